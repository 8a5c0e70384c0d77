// Written by dev/embed-pages from Assets/notifications.js. Do not edit.
extension PageFile {
    static let notificationsJS = PageFile(
        "notifications.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // What comes to this phone by itself: pushes, text messages and mails, from the demo's catchers.

            import { isKnown, t } from "./texts.js";
            import { backoff, pause } from "./requests.js";

            /** Listens for as long as the page lives. `heard(message, isOld)` for each, `state({offline, gone})` when that changes. */
            export async function listen(number, { heard, state }) {
              let [after, isOffline, isFirst] = [0, false, true];
              for (let troubles = 0; ; ) {
                try {
                  const query = new URLSearchParams({ phone: number, after, offline: isOffline });
                  const response = await fetch(`/messages?${query}`, { cache: "no-store" });
                  if (!response.ok) throw new Error(`status ${response.status}`);
                  const { messages, last, offline } = await response.json();
                  for (const message of messages) heard(message, isFirst);
                  // While the phone is offline nothing is handed out, and nothing is past either.
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

            /** What the notification says: the push has keys for the app's own words, and never what is agreed to. */
            export function alertOf(payload) {
              const alert = payload?.aps?.alert ?? {};
              const key = isKnown(alert["loc-key"] ?? "") ? alert["loc-key"] : "TWOEFAY_LOGIN";
              const values = Object.fromEntries((alert["loc-args"] ?? []).map((value, at) => [at, value]));
              return { title: alert.title ?? t("TWOEFAY_TITLE"), text: t(key, values) };
            }

            """#)
}
