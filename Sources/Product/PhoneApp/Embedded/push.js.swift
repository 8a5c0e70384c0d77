// Written by dev/embed-pages from Assets/push.js. Do not edit.
extension AppFile {
    static let pushJS = AppFile(
        "push.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The subscription to pushes. A relay signs its pushes by a key of its own, and a subscription has
            // one such key, so each further relay has its own registration of the service worker.

            import { decode, encode, utf8 } from "./bytes.js";
            import { CallFailure } from "./calls.js";
            import { digest } from "./signing.js";
            import { workerAddress } from "./trusted.js";

            /** What the browser says about notifications: `granted`, `denied`, `default` or `none`. */
            export function permission(scope = globalThis) {
              if (!("PushManager" in scope) || !("Notification" in scope)) return "none";
              return scope.Notification.permission;
            }

            /** Asks the person. Call it from a click: browsers refuse the question otherwise. */
            export async function askPermission() {
              return (await Notification.requestPermission()) === "granted";
            }

            async function registrationFor(at) {
              if (at === location.origin) return navigator.serviceWorker.ready;
              const scope = `/phone/push/${encode(await digest(utf8(at))).slice(0, 16)}/`;
              const registration = await navigator.serviceWorker.register(workerAddress(), { scope });
              await active(registration);
              return registration;
            }

            /** A subscription needs an active worker, and no page of that scope ever waits for one. */
            function active(registration) {
              const worker = registration.installing ?? registration.waiting ?? registration.active;
              if (worker.state === "activated") return undefined;
              return new Promise((resolve) => {
                worker.addEventListener("statechange", () => {
                  if (worker.state === "activated" || worker.state === "redundant") resolve();
                });
              });
            }

            /**
             * Returns the device token for the relay of a phone: its subscription, which is made anew if the
             * relay has another key than it. An empty text if pushes are not possible or not allowed.
             */
            export async function deviceToken(phone, line) {
              if (permission() !== "granted") return "";
              const answer = await line.send("/push", { method: "GET", proved: false });
              if (answer.status !== 200) throw new CallFailure("refused", "the relay did not say its key for pushes", { status: answer.status });
              const key = answer.body?.web?.application_server_key;
              const bytes = decode(key ?? null);
              if (bytes?.length !== 65) return "";
              const { pushManager } = await registrationFor(phone.at);
              let subscription = await pushManager.getSubscription();
              if (subscription && !isSame(subscription.options?.applicationServerKey, key)) {
                await subscription.unsubscribe();
                subscription = null;
              }
              subscription ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes });
              const { endpoint, keys } = subscription.toJSON();
              return encode(utf8(JSON.stringify({ endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } })));
            }

            const isSame = (buffer, key) => !buffer || encode(buffer) === key;

            """#)
}
