// Written by dev/embed-pages from Assets/qr.js. Do not edit.
extension AppFile {
    static let qrJS = AppFile(
        "qr.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Reads a QR code (ISO/IEC 18004) from a picture, for browsers that cannot.

            import { readGrid } from "./qr-grid.js";
            import { findGrids } from "./qr-picture.js";

            /**
             * The text of the first code in a picture {data, width, height}, as a canvas gives it; else null.
             */
            export function readCode(picture) {
              for (const grid of findGrids(picture)) {
                const text = readGrid(grid);
                if (text !== null) return text;
              }
              return null;
            }

            """#)
}
