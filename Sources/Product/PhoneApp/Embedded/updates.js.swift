// Written by dev/embed-pages from Assets/updates.js. Do not edit.
extension AppFile {
    static let updatesJS = AppFile(
        "updates.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The offer of a new version. The service worker changes nothing until the person accepts it.

            import { askWorker, changedFiles, startWorker } from "./version.js";

            export class Updates {
              registration = null;
              /** {old, config, name} of a version that the person may accept, or null. */
              offer = null;

              constructor(app) {
                this.app = app;
              }

              get isReady() {
                return this.offer !== null;
              }

              /** The paths of the files that the offered version changes. */
              get changed() {
                return this.offer ? changedFiles(this.offer.old ?? { files: {} }, this.offer.config) : [];
              }

              async start() {
                this.registration = await startWorker();
                // Whoever starts the app offline has a version, and looks for another one later.
                this.look();
                addEventListener("online", () => this.look());
              }

              async look() {
                if (!this.registration) return;
                try {
                  const told = await askWorker(this.registration, { kind: "update" });
                  this.offer = told.isNew && told.old ? told : null;
                } catch {
                  this.offer = null;
                }
                this.app.shell.drawBanner();
              }

              /** Loads the version that the person has seen, and starts the app with it. */
              async accept() {
                await askWorker(this.registration, { kind: "accept", name: this.offer.name });
                location.reload();
              }
            }

            """#)
}
