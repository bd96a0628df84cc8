export { ApiError, Switchboard } from "./client.js";
export { SignatureError, fetchHandler, nodeHandler, readCallback, verifySignature } from "./callbacks.js";
