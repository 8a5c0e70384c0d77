// The pushes of all phones: the subscriptions, and what the service worker tells the page.

import { askPermission, deviceToken, permission } from "./push.js";

export class Pushes {
  constructor(app) {
    this.app = app;
  }

  get permission() {
    return this.app.environment.hasPushes && this.app.updates.registration ? permission() : "none";
  }

  /** Takes what the service worker says: a push has come, or a notification was pressed. */
  listen() {
    navigator.serviceWorker?.addEventListener("message", ({ data }) => {
      if (data?.kind === "wake") this.app.requests.wake(this.app.bound);
      if (data?.kind === "open") this.app.openRequest(data.challenge ?? null);
    });
  }

  /** Asks the person, and subscribes every phone. Returns whether pushes are allowed now. */
  async allow() {
    if (!(await askPermission())) return false;
    for (const phone of this.app.bound) await this.renew(phone);
    return true;
  }

  /** Tells the relay the subscription of a phone, if it knows another one or none. */
  async renew(phone) {
    if (!this.app.environment.hasPushes || this.permission === "default") return;
    const token = await deviceToken(phone, this.app.line(phone));
    if (token === (this.app.current(phone).pushToken ?? "")) return;
    await this.app.responder(phone).movePush(token);
    await this.app.change(phone, { pushToken: token });
  }
}
