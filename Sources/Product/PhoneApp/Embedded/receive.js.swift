// Written by dev/embed-pages from Assets/receive.js. Do not edit.
extension AppFile {
    static let receiveJS = AppFile(
        "receive.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Takes a link or a scanned code: an activation, which adds an account, a code to log in with, or a
            // link to the own account.

            import { LinkRefused, isLink, takeLink } from "./activation.js";
            import { mustInstallFirst } from "./capabilities.js";
            import { MalformedOTP, holdOTP, readOTPAuth } from "./otp.js";
            import { readAccountLink } from "./own-account.js";

            /** Shows the screen for a link; a screen with the reason if it must not be followed. */
            export async function receive(app, text) {
              try {
                if (text.startsWith("otpauth:")) {
                  await app.saveCode({ ...(await holdOTP(readOTPAuth(text))), id: crypto.randomUUID() });
                  return app.shell.go("codes");
                }
                const account = text.startsWith(`${app.environment.origin}/phone/#`) ? readAccountLink(text.slice(text.indexOf("#") + 1)) : null;
                if (account) return app.shell.go("linked", account.link);
                if (!isLink(text)) throw new LinkRefused("linkUnknown");
                const { config, origin } = app.environment;
                const activation = takeLink(text, { origin, relays: config.relays });
                // The app has sent nothing, and the link still works where the app is installed.
                if (mustInstallFirst()) return app.shell.go("install", { link: text });
                return app.shell.go("enrol", { activation });
              } catch (error) {
                if (error instanceof MalformedOTP) return app.shell.go("refused", new LinkRefused("linkMalformed", { why: error.message }));
                if (error instanceof LinkRefused) return app.shell.go("refused", error);
                throw error;
              }
            }

            """#)
}
