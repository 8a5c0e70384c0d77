// Written by dev/embed-pages from Assets/scanner.js. Do not edit.
extension AppFile {
    static let scannerJS = AppFile(
        "scanner.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Reads QR codes by the camera, until one is found or the screen is left.

            import { readCode } from "./qr.js";

            /** The width of the pictures that are looked at. Larger ones take longer and show no more. */
            const width = 640;

            /** Returns the text of the first code; null if the screen was left. Throws without a camera. */
            export async function scan(video, signal, ready = () => {}) {
              const stream = await navigator.mediaDevices.getUserMedia({ audio: false, video: { facingMode: "environment", width: { ideal: 1280 } } });
              const stop = () => {
                for (const track of stream.getTracks()) track.stop();
                video.hidden = true;
              };
              try {
                video.srcObject = stream;
                video.hidden = false;
                await video.play();
                ready();
                const look = await reader();
                while (!signal.aborted) {
                  const text = await look(video);
                  if (text) return text;
                  await new Promise((resolve) => setTimeout(resolve, 120));
                }
                return null;
              } finally {
                stop();
              }
            }

            /** The browser's own reader if it reads QR codes, else that of this app. */
            async function reader() {
              const formats = (await globalThis.BarcodeDetector?.getSupportedFormats?.().catch(() => [])) ?? [];
              if (formats.includes("qr_code")) {
                const detector = new BarcodeDetector({ formats: ["qr_code"] });
                return async (video) => (await detector.detect(video).catch(() => []))[0]?.rawValue ?? null;
              }
              const canvas = document.createElement("canvas");
              const drawing = canvas.getContext("2d", { willReadFrequently: true });
              return async (video) => {
                if (video.videoWidth === 0) return null;
                canvas.width = width;
                canvas.height = Math.round((width * video.videoHeight) / video.videoWidth);
                drawing.drawImage(video, 0, 0, canvas.width, canvas.height);
                return readCode(drawing.getImageData(0, 0, canvas.width, canvas.height));
              };
            }

            """#)
}
