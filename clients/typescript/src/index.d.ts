/** A decimal as text, such as "0.045". */
export type Decimal = string;
/** UTC, `YYYY-MM-DD HH:MM:SS`. */
export type UtcTime = string;
export type Priority = "high" | "normal" | "low";
export type Channel = "sms" | "viber" | "hlr";
export type State = "scheduled" | "queued" | "sent" | "delivered" | "failed" | "expired" | "cancelled";

export interface ClientOptions {
  baseUrl: string;
  /** An API token. */
  token: string;
  /** The service's setting for the names of headers; `X-Service` when absent. */
  headerPrefix?: string;
  /** How often a failed request is repeated; 4 when absent. */
  retries?: number;
  /** The time for one attempt; 30000 when absent. */
  timeoutMs?: number;
  fetch?: typeof fetch;
}

export interface SendOptions {
  /** The same key with the same message sends once within 24 hours. A new one for each call when absent. */
  idempotencyKey?: string;
}

export interface SmsMessage {
  to: string | string[];
  from: string;
  message: string;
  dlrUrl?: string;
  priority?: Priority;
  /** ISO 8601 with offset. */
  scheduled?: string;
  udh?: string;
  coding?: 0 | 1 | 2;
  testMode?: "1" | "2";
  expireIn?: number;
  correctBy?: string;
}

export interface Action {
  url: string;
  title: string;
}

export interface Image {
  url: string;
}

export interface Interactive {
  action?: Action;
  image?: Image;
}

export interface ViberMessage {
  to: string | string[];
  from: string;
  message: string;
  dlrUrl?: string;
  priority?: Priority;
  scheduled?: string;
  testMode?: "1" | "2";
  correctBy?: string;
  im?: Interactive;
}

export interface Sent {
  /** One for each recipient, in their order. */
  ids: string[];
  /** Over all recipients; each is charged. */
  parts: number | null;
}

export interface Estimate {
  to: string;
  parts: number;
  coding: 0 | 1 | 2;
  countryISO: string | null;
  mccmnc: string | null;
  pricePerPart: Decimal;
  totalPrice: Decimal;
  currency: string;
}

export interface Refusal {
  status: number;
  message: string;
  error: number | null;
}

export interface Check {
  accepted: boolean;
  refusal: Refusal | null;
  parts: number;
  totalPrice: Decimal;
  currency: string;
  recipients: Estimate[];
}

export interface MessageStatus {
  id: string;
  status: 1 | 2 | 16 | null;
  error: number | null;
  dlrDate: UtcTime | null;
  state: State;
  parts: number;
  mcc: string | null;
  mnc: string | null;
}

export interface Cancelled {
  id: string;
  status: "cancelled";
}

export interface ScheduledMessage {
  id: string;
  scheduled: UtcTime;
  from: string;
  to: string;
  message: string;
  dlrUrl: string | null;
}

export interface ListedMessage {
  id: string;
  channel: Channel;
  from: string | null;
  to: string | null;
  accepted: UtcTime;
  /** Null unless it is scheduled and still waits. */
  scheduled: UtcTime | null;
  state: State;
  status: 1 | 2 | 16 | null;
  error: number | null;
  parts: number;
  price: Decimal;
}

export interface InboundMessage {
  id: string;
  from: string;
  to: string;
  message: string;
  received: UtcTime;
  parts: number;
  coding: 0 | 1 | 2;
  udh: string | null;
  mcc: string | null;
  mnc: string | null;
  keyword: string | null;
  inReplyTo: string | null;
  incomplete: boolean;
}

export interface OptOut {
  number: string;
  sender: string | null;
  since: UtcTime;
  via: "keyword" | "api" | "dashboard" | "import";
}

export interface RemovedOptOut {
  number: string;
  sender: string | null;
}

export interface CodeRequest {
  to: string;
  from?: string;
  length?: number;
  expireIn?: number;
  /** With `{code}` where the code belongs. */
  message?: string;
  correctBy?: string;
}

export interface SentCode {
  id: number;
  to: string;
  /** RFC 3339. */
  expires: string;
}

export interface Verification extends SentCode {
  status: "pending" | "approved" | "expired" | "failed";
}

export interface CheckedCode {
  id: number;
  status: "approved";
}

export type SenderStatus = "pending" | "awaiting_confirmation" | "approved" | "rejected" | "revoked";
export type SenderCategory = "Company" | "Product" | "Brand" | "Shortcode" | "Landline" | "Other";

export type SenderRequest =
  | {
      type: "AlphaNumeric";
      name: string;
      category: SenderCategory;
      categoryDescription: string;
      notificationUrl?: string;
    }
  | { type: "MSISDN"; name: string; notificationUrl?: string };

export interface Sender {
  id: number;
  name: string;
  type: "AlphaNumeric" | "MSISDN";
  status: SenderStatus;
  reason: string | null;
  category: SenderCategory | null;
  categoryDescription: string | null;
  notificationUrl: string | null;
  created: string;
}

export interface ConfirmedSender {
  id: number;
  status: SenderStatus;
}

export interface LookupRequest {
  msisdn: string;
  callBackUrl?: string;
}

export interface OriginalOperator {
  operatorId: number;
  operator: string;
  country: string | null;
}

export interface LookupResult {
  id: string;
  error: number;
  imsi?: number;
  country?: string;
  operatorId?: number;
  mcc?: string;
  mnc?: string;
  ported?: OriginalOperator[];
}

export interface Lookup {
  id: number;
  state: "pending" | "done";
  result: LookupResult | null;
}

export interface Rate {
  CountryName: string;
  CountryCode: string;
  Operator: string;
  Network: string;
  MCC: number | null;
  MNC: string | null;
  Rate: Decimal;
}

export interface Operator {
  name: string;
  country: string | null;
  mcc: number | null;
  mnc: string[];
}

export interface Network {
  country: string | null;
  MCC: number;
  MNC: string;
  operatorId: number;
}

export interface Prefix {
  prefix: number;
  country: string | null;
  operatorId: number;
}

export interface NumberToCorrect {
  Number: string;
  CountryIso?: string;
}

export interface CorrectedNumber {
  Error: string | null;
  Number: string | null;
  NumberType: "mobile" | "landline" | "unknown";
  CountryIso: string | null;
  Mobile: boolean;
  NumberE164: string | null;
}

export interface AccountLimits {
  creditLimit: Decimal;
  dailyCap: Decimal | null;
  leftToday: Decimal | null;
  clientDailyCap: Decimal | null;
  clientLeftToday: Decimal | null;
  perRecipientHour: number | null;
  countries: string[];
  approvedSendersOnly: boolean;
  requestsPerSecond: number | null;
}

export interface TokenDescription {
  account: string;
  name: string;
  permissions: string[];
  ips: string[];
  expires: string | null;
  currency: string;
  balance: Decimal;
  limits?: AccountLimits;
}

export interface InboxQuery {
  from?: string;
  to?: string;
  since?: string;
  until?: string;
  /** The size of a page. */
  limit?: number;
  cursor?: string;
}

export interface MessageQuery extends InboxQuery {
  state?: State;
  channel?: Channel;
}

export class ApiError extends Error {
  readonly status: number;
  /** The service error code, if the catalogue has one. */
  readonly errorCode: number | null;
  readonly retryAfterS: number | null;
  readonly requiredPermission: string | null;
  readonly requestId: string | null;
}

export class Switchboard {
  constructor(options: ClientOptions);
  sendSms(message: SmsMessage, options?: SendOptions): Promise<Sent>;
  sendViber(message: ViberMessage, options?: SendOptions): Promise<Sent>;
  estimateSms(message: SmsMessage): Promise<Estimate[]>;
  checkSms(message: SmsMessage): Promise<Check>;
  readMessageStatus(id: string): Promise<MessageStatus>;
  cancelMessage(id: string): Promise<Cancelled>;
  listScheduledSms(query?: { limit?: number; offset?: number }): AsyncGenerator<ScheduledMessage>;
  listMessages(query?: MessageQuery): AsyncGenerator<ListedMessage>;
  listInbox(query?: InboxQuery): AsyncGenerator<InboundMessage>;
  readInboxMessage(id: string): Promise<InboundMessage>;
  listOptOuts(query?: { limit?: number; cursor?: string }): AsyncGenerator<OptOut>;
  addOptOut(number: string, sender?: string): Promise<OptOut>;
  removeOptOut(number: string, sender?: string): Promise<RemovedOptOut>;
  sendCode(request: CodeRequest, options?: SendOptions): Promise<SentCode>;
  checkCode(id: number, code: string): Promise<CheckedCode>;
  readVerification(id: number): Promise<Verification>;
  /** Returns the ID of the sender. */
  registerSender(sender: SenderRequest): Promise<number>;
  confirmSender(id: number, code: string): Promise<ConfirmedSender>;
  readSender(id: number): Promise<Sender>;
  listSenders(query?: { limit?: number; offset?: number }): AsyncGenerator<Sender>;
  /** Returns the ID of the lookup. Without `callBackUrl`, read the result with `readLookup`. */
  lookUp(request: LookupRequest, options?: SendOptions): Promise<number>;
  readLookup(id: number): Promise<Lookup>;
  listRates(query?: { channel?: Channel }): Promise<Rate[]>;
  readOperator(id: number): Promise<Operator>;
  listNetworks(country: string): AsyncGenerator<Network>;
  listPrefixes(country: string): Promise<Prefix[]>;
  correctNumbers(numbers: NumberToCorrect[]): Promise<CorrectedNumber[]>;
  readToken(query?: { limits?: true }): Promise<TokenDescription>;
}

export interface DeliveryReport {
  id: string;
  /** 1 delivered, 2 not delivered, 3 seen (Viber), 16 expired after it was sent. */
  status: 1 | 2 | 3 | 16;
  error: number;
  mcc?: string;
  mnc?: string;
}

export interface SenderNotification {
  id: number;
  name: string;
  type: "AlphaNumeric" | "MSISDN";
  status: SenderStatus;
  previousStatus: SenderStatus;
  reason: string | null;
  timestamp: string;
}

/** `id` is the same when a callback comes again. */
export type Callback =
  | { kind: "report"; id: string; data: DeliveryReport }
  | { kind: "inbound"; id: string; data: InboundMessage }
  | { kind: "lookup"; id: string; data: LookupResult }
  | { kind: "sender"; id: string; data: SenderNotification };

export type Headers = { get(name: string): string | null } | Record<string, string | string[] | undefined>;
export interface VerifyOptions {
  /** How old a callback may be; 300 when absent. */
  toleranceS?: number;
  /** Milliseconds since 1970; the present when absent. */
  now?: number;
}

export class SignatureError extends Error {}
export function verifySignature(
  secret: string,
  headers: Headers,
  body: Uint8Array | string,
  options?: VerifyOptions,
): void;
export function readCallback(
  secret: string,
  headers: Headers,
  body: Uint8Array | string,
  options?: VerifyOptions,
): Callback;

type Receive = (callback: Callback) => void | Promise<void>;
interface NodeRequest extends AsyncIterable<Uint8Array> {
  headers: Record<string, string | string[] | undefined>;
}
interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text: string): unknown;
}
export function nodeHandler(
  secret: string,
  receive: Receive,
): (request: NodeRequest, response: NodeResponse) => Promise<void>;
export function fetchHandler(secret: string, receive: Receive): (request: Request) => Promise<Response>;
