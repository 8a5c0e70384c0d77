/** QR codes, read by the decoder of zbar (`zbarimg`): of the modules, and of the SVG as drawn. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { drawQR, encodeQR } from "../src/qr.js";

const isThere = (program) => spawnSync(program, ["--version"]).error === undefined;
const skip = isThere("zbarimg") ? false : "zbarimg is not installed (zbar-tools)";
const directory = mkdtempSync(join(tmpdir(), "twoefay-qr-"));
after(() => rmSync(directory, { recursive: true }));

/** The most bytes of each version, from the standard's table for level M. */
const CAPACITY = [
  14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504, 560, 624, 666,
  711, 779, 857, 911, 997, 1059, 1125, 1190, 1264, 1370, 1452, 1538, 1628, 1722, 1809, 1911, 1989,
  2099, 2213, 2331,
];

function decoded(files) {
  const words = ["--quiet", "--nodbus", "--raw", "-Sdisable", "-Sqrcode.enable", ...files];
  return execFileSync("zbarimg", words, { encoding: "utf8" }).split("\n").slice(0, -1);
}

/** Writes the modules as a picture, three pixels for each, with the border that readers need. */
function picture(name, rows) {
  const scale = 3, size = (rows.length + 8) * scale;
  const pixels = Buffer.alloc(size * size, 255);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const [row, column] = [y, x].map((at) => Math.floor(at / scale) - 4);
      if (rows[row]?.[column]) pixels[y * size + x] = 0;
    }
  }
  const file = join(directory, `${name}.pgm`);
  writeFileSync(file, Buffer.concat([Buffer.from(`P5 ${size} ${size} 255\n`), pixels]));
  return file;
}

/** A text of letters, digits and signs of a URI that repeats after a long time only. */
function textOf(length) {
  const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=&%:/?.~";
  let state = length + 1, text = "";
  while (text.length < length) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    text += letters[(state >> 8) % letters.length];
  }
  return text;
}

test("each version is read when it is full", { skip }, () => {
  const texts = CAPACITY.map(textOf);
  const files = texts.map((text, index) => {
    const rows = encodeQR(Buffer.from(text));
    assert.equal(rows.length, 21 + 4 * index);
    return picture(`version-${index + 1}`, rows);
  });
  assert.deepEqual(decoded(files), texts);
});

test("each version is read with the least text that needs it", { skip }, () => {
  const texts = CAPACITY.slice(0, 19).map((most) => textOf(most + 1));
  const files = texts.map((text, index) =>
    picture(`least-${index + 2}`, encodeQR(Buffer.from(text))));
  assert.deepEqual(decoded(files), texts);
});

test("each mask is read", { skip }, () => {
  for (const length of [40, 300]) {
    const text = textOf(length);
    const files = [0, 1, 2, 3, 4, 5, 6, 7]
      .map((mask) => picture(`mask-${length}-${mask}`, encodeQR(Buffer.from(text), mask)));
    assert.deepEqual(decoded(files), new Array(8).fill(text));
  }
});

test("a code that is damaged is read", { skip }, () => {
  const text = textOf(200);
  const rows = encodeQR(Buffer.from(text));
  for (let at = 20; at < 24; at++) rows[at].fill(true, 20, 30); // level M corrects about 15 %
  assert.deepEqual(decoded([picture("damaged", rows)]), [text]);
});

test("all texts of an enrolment fit, and longer ones are refused", () => {
  assert.equal(encodeQR(Buffer.from(textOf(2331))).length, 177);
  assert.throws(() => encodeQR(Buffer.from(textOf(2332))), RangeError);
});

const noRenderer = isThere("rsvg-convert") ? skip : "rsvg-convert is not installed (librsvg2-bin)";
test("the SVG is read as it is drawn", { skip: noRenderer }, () => {
  for (const length of [30, 280]) {
    const uri = `twoefay://enrol?${textOf(length)}`;
    const svg = drawQR(uri, "QR code for your phone");
    assert(!/href|<script|style|on[a-z]+=/.test(svg));
    assert(svg.includes("<title>QR code for your phone</title>"));
    const [source, file] = ["svg", "png"].map((kind) => join(directory, `drawn-${length}.${kind}`));
    writeFileSync(source, svg);
    execFileSync("rsvg-convert", ["--output", file, source]);
    assert.deepEqual(decoded([file]), [uri]);
  }
});
