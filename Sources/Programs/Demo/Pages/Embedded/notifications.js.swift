// Written by dev/embed-pages from Assets/notifications.js. Do not edit.
extension PageFile {
    static let notificationsJS = PageFile(
        "notifications.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The pushes, text messages and mails for this phone, from the demo's servers.

            import { isKnown, t } from "./texts.js";
            import { backoff, pause } from "./requests.js";

            /** Polls until the page is closed. Calls `heard(message, isOld)` for each message and `state({offline, gone})` after each poll. */
            export async function listen(number, { heard, state }) {
              let [after, isOffline, isFirst] = [0, false, true];
              for (let troubles = 0; ; ) {
                try {
                  const query = new URLSearchParams({ phone: number, after, offline: isOffline });
                  const response = await fetch(`/messages?${query}`, { cache: "no-store" });
                  if (!response.ok) throw new Error(`status ${response.status}`);
                  const { messages, last, offline } = await response.json();
                  for (const message of messages) heard(message, isFirst);
                  // While the phone is offline, nothing arrives and `last` stays the same.
                  after = last ?? after;
                  isFirst = false;
                  troubles = 0;
                  isOffline = Boolean(offline);
                  state({ offline: isOffline, gone: false });
                } catch {
                  troubles += 1;
                  state({ offline: isOffline, gone: true });
                  await pause(backoff(troubles));
                }
              }
            }

            /** The text of a notification. The push has only keys of the app's own texts, and no content to approve. */
            export function alertOf(payload) {
              const alert = payload?.aps?.alert ?? {};
              const key = isKnown(alert["loc-key"] ?? "") ? alert["loc-key"] : "TWOEFAY_LOGIN";
              const values = Object.fromEntries((alert["loc-args"] ?? []).map((value, at) => [at, value]));
              return { title: alert.title ?? t("TWOEFAY_TITLE"), text: t(key, values) };
            }

            """#)
}
