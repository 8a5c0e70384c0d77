/** The second factor for Express: a router with the waiting page. */

import type { AskOptions, JSONObject, Relay } from "./index.js";

/** What the page shows. The values are not escaped. */
export interface WaitingContext {
  /** The number to enter on the phone; null if there is none. */
  number: string | null;
  /** The name and the value of the form's hidden field. */
  tokenName: string;
  token: string;
  message: string;
  /** Whether the login has ended: then there is no form. */
  ended: boolean;
  /** The nonce of the page's script and style. */
  nonce: string;
  /** Answers `{"ended": true}` once the form may be sent. */
  stateURL: string;
  /** Whether the form has a field `code`. */
  codes: boolean;
}

/** A request of Express with a session. Structural, so that Express's own types are not needed. */
export interface SessionRequest {
  method: string;
  path: string;
  ip?: string | undefined;
  headers: { [name: string]: string | string[] | undefined };
  session?: any;
  body?: any;
}

export interface PageResponse {
  redirect(status: number, url: string): any;
  status(status: number): any;
  set(...fields: any[]): any;
  json(value: any): any;
  send(body: any): any;
}

export interface SecondFactorOptions<Request, Response> {
  /** Runs after an approval that was checked, with a new session, and answers the request. */
  onApproved(request: Request, response: Response, username: string, kept: JSONObject): unknown;
  /** Where the router stands: `/second-factor` by default. */
  path?: string;
  /** The page for a visitor who has no login to wait for: `/` by default. */
  home?: string;
  /** Returns the page, in place of the one of this package. */
  render?(context: WaitingContext): string;
  /** Gets a line for each error. `console.warn` by default. */
  log?(line: string): void;
}

/** The second factor of an Express application, with sessions of express-session or the like. */
export class SecondFactor<
  Request extends SessionRequest = any, Response extends PageResponse = any,
> {
  constructor(relay: Relay, options: SecondFactorOptions<Request, Response>);
  readonly relay: Relay;
  readonly path: string;
  /** The router, for `app.use(factor.path, factor.router)`. */
  get router(): (request: any, response: any, next: (error?: any) => void) => void;
  /** Asks the user's phone, and shows the waiting page. `kept` is for `onApproved`. */
  start(
    request: Request, response: Response, username: string, asked?: AskOptions, kept?: JSONObject,
  ): Promise<void>;
}
