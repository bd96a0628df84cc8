// Every method of the client, as a program uses it. Only compiled.

import http from "node:http";
import express from "express";
import {
  ApiError,
  SignatureError,
  Switchboard,
  fetchHandler,
  nodeHandler,
  readCallback,
  verifySignature,
} from "switchboard-client";
import type { Callback, CodeRequest, LookupRequest, SmsMessage, State } from "switchboard-client";

const switchboard = new Switchboard({
  baseUrl: "https://switchboard.example.com",
  token: "sb_1",
  headerPrefix: "X-Service",
  retries: 4,
  timeoutMs: 30_000,
  fetch,
});
const options = { idempotencyKey: "order-17" };

export async function messages(): Promise<void> {
  const sms: SmsMessage = { to: ["+37120000001"], from: "Acme", message: "Hi", coding: 0, testMode: "1" };
  const { ids, parts }: { ids: string[]; parts: number | null } = await switchboard.sendSms(sms, options);
  const im = { action: { url: "https://example.com", title: "Open" } };
  await switchboard.sendViber({ to: "+37120000001", from: "Acme", message: "Hi", im });
  const prices: string[] = (await switchboard.estimateSms(sms)).map(({ totalPrice }) => totalPrice);
  const { accepted, refusal } = await switchboard.checkSms(sms);
  const reason: string | undefined = refusal?.message;
  const state: State = (await switchboard.readMessageStatus(ids[0]!)).state;
  const cancelled: "cancelled" = (await switchboard.cancelMessage("1")).status;
  for await (const { scheduled } of switchboard.listScheduledSms({ limit: 10, offset: 0 })) {
    console.log(scheduled.length);
  }
  for await (const { error } of switchboard.listMessages({ state: "failed", channel: "sms", limit: 10 })) {
    const code: number | null = error;
    console.log(code, parts, prices, accepted, reason, state, cancelled);
  }
  for await (const { received } of switchboard.listInbox({ from: "+37120000001", since: "2030-01-31" })) {
    console.log(received.length);
  }
  const text: string = (await switchboard.readInboxMessage("1")).message;
  const rules: string[] = [];
  for await (const { number } of switchboard.listOptOuts({ limit: 10 })) {
    rules.push(number);
  }
  const via: "keyword" | "api" | "dashboard" | "import" = (await switchboard.addOptOut("+37120000001", "Acme")).via;
  const { sender }: { sender: string | null } = await switchboard.removeOptOut("+37120000001");
  console.log(text, via, sender);
}

export async function verification(): Promise<void> {
  const request: CodeRequest = { to: "+37120000001", length: 6, expireIn: 300, message: "{code}" };
  const { id, expires }: { id: number; expires: string } = await switchboard.sendCode(request, options);
  const approved: "approved" = (await switchboard.checkCode(id, "123456")).status;
  const { status } = await switchboard.readVerification(id);
  console.log(expires, approved, status === "expired");
  const sender: number = await switchboard.registerSender({ type: "MSISDN", name: "+37120000001" });
  await switchboard.registerSender({
    type: "AlphaNumeric",
    name: "Acme",
    category: "Brand",
    categoryDescription: "Our brand",
  });
  const confirmed = await switchboard.confirmSender(sender, "12345");
  const { category } = await switchboard.readSender(confirmed.id);
  for await (const { name, reason } of switchboard.listSenders({ limit: 10, offset: 0 })) {
    console.log(name.length, reason?.length, category === "Brand");
  }
}

export async function numbers(): Promise<void> {
  const request: LookupRequest = { msisdn: "+37120000001", callBackUrl: "https://example.com" };
  const lookup: number = await switchboard.lookUp(request, options);
  const { result } = await switchboard.readLookup(lookup);
  const before: number | undefined = result?.ported?.[0]?.operatorId;
  const prices: string[] = (await switchboard.listRates({ channel: "viber" })).map(({ Rate }) => Rate);
  const codes: string[] = (await switchboard.readOperator(1)).mnc;
  for await (const { MCC, MNC } of switchboard.listNetworks("LV")) {
    console.log(MCC + 1, MNC.length, before, prices, codes);
  }
  const prefixes: number[] = (await switchboard.listPrefixes("LV")).map(({ prefix }) => prefix);
  const [corrected] = await switchboard.correctNumbers([{ Number: "29111111", CountryIso: "LV" }]);
  const { balance, limits } = await switchboard.readToken({ limits: true });
  console.log(prefixes, corrected?.NumberE164, balance.length, limits?.dailyCap);
}

function receive(callback: Callback): void {
  switch (callback.kind) {
    case "report":
      console.log(callback.data.status === 1);
      break;
    case "inbound":
      console.log(callback.data.message.length);
      break;
    case "lookup":
      console.log(callback.data.mcc?.length);
      break;
    case "sender":
      console.log(callback.data.previousStatus === "pending");
  }
}

const handler = nodeHandler("whsec_", receive);
http.createServer(handler).listen(8000);
express().post("/callbacks", handler);
export const POST: (request: Request) => Promise<Response> = fetchHandler("whsec_", receive);

export function errors(request: Request, body: Uint8Array): void {
  try {
    verifySignature("whsec_", { "webhook-id": "msg_1" }, "{}", { toleranceS: 60, now: Date.now() });
    receive(readCallback("whsec_", request.headers, body));
  } catch (error) {
    if (error instanceof ApiError) {
      console.log(error.status + 1, error.errorCode, error.retryAfterS, error.requiredPermission, error.requestId);
    }
    console.log(error instanceof SignatureError);
  }
}
