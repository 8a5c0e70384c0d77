// Written by dev/embed-pages from Assets/trusted.js. Do not edit.
extension AppFile {
    static let trustedJS = AppFile(
        "trusted.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The only address of a script that this app gives to the browser. The page's policy requires
            // trusted types, so that no text can become a script or markup by mistake.

            const address = "/phone/worker.js";
            const policy = globalThis.trustedTypes?.createPolicy("twoefay-phone", {
              createScriptURL: (text) => {
                if (text !== address) throw new TypeError("this app has only one worker");
                return text;
              },
            });

            export const workerAddress = () => policy?.createScriptURL(address) ?? address;

            """#)
}
