// Written by dev/embed-pages from Assets/qr-correction.js. Do not edit.
extension AppFile {
    static let qrCorrectionJS = AppFile(
        "qr-correction.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // Corrects a block of a QR code: Reed-Solomon over the field of 256 elements with the polynomial
            // x⁸ + x⁴ + x³ + x² + 1.

            const powers = new Uint8Array(510);
            const logarithms = new Uint8Array(256);
            for (let at = 0, value = 1; at < 255; at += 1) {
              powers[at] = powers[at + 255] = value;
              logarithms[value] = at;
              value = value < 128 ? value << 1 : (value << 1) ^ 0x11d;
            }

            const times = (a, b) => (a === 0 || b === 0 ? 0 : powers[logarithms[a] + logarithms[b]]);
            const inverse = (a) => powers[255 - logarithms[a]];

            /** The value of a polynomial, whose lowest coefficient comes first. */
            const valueAt = (polynomial, x) => polynomial.reduceRight((sum, coefficient) => times(sum, x) ^ coefficient, 0);

            /** The block without its faults; null if it has too many. `count` is that of its corrections. */
            export function correct(block, count) {
              const syndromes = Array.from({ length: count }, (_, at) => block.reduce((sum, byte) => times(sum, powers[at]) ^ byte, 0));
              if (syndromes.every((one) => one === 0)) return block;
              const locator = findLocator(syndromes);
              if (!locator) return null;
              const faults = [];
              for (let at = 0; at < block.length; at += 1) if (valueAt(locator, powers[(255 - at) % 255]) === 0) faults.push(at);
              if (faults.length !== locator.length - 1) return null;
              return repair(block, faults, syndromes, locator);
            }

            /** The polynomial whose roots are the places of the faults (Berlekamp and Massey). */
            function findLocator(syndromes) {
              let [current, previous] = [[1], [1]];
              let [length, gap, last] = [0, 1, 1];
              for (let at = 0; at < syndromes.length; at += 1) {
                let difference = syndromes[at];
                for (let i = 1; i <= length; i += 1) difference ^= times(current[i] ?? 0, syndromes[at - i]);
                if (difference === 0) {
                  gap += 1;
                  continue;
                }
                const factor = times(difference, inverse(last));
                const next = [...current];
                previous.forEach((coefficient, i) => { next[i + gap] = (next[i + gap] ?? 0) ^ times(factor, coefficient); });
                for (let i = 0; i < next.length; i += 1) next[i] ??= 0;
                if (2 * length <= at) {
                  [previous, length, last, gap] = [current, at + 1 - length, difference, 1];
                } else {
                  gap += 1;
                }
                current = next;
              }
              while (current.at(-1) === 0) current.pop();
              return current.length - 1 === length && 2 * length <= syndromes.length ? current : null;
            }

            /** Computes the value of each fault (Forney), and takes it off. */
            function repair(block, faults, syndromes, locator) {
              const evaluator = syndromes.map((_, at) => locator.slice(0, at + 1).reduce((sum, one, i) => sum ^ times(one, syndromes[at - i]), 0));
              const derivative = locator.slice(1).map((coefficient, at) => (at % 2 === 0 ? coefficient : 0));
              const result = [...block];
              for (const at of faults) {
                const root = powers[(255 - at) % 255];
                const divisor = valueAt(derivative, root);
                if (divisor === 0) return null;
                result[block.length - 1 - at] ^= times(powers[at], times(valueAt(evaluator, root), inverse(divisor)));
              }
              return result;
            }

            """#)
}
