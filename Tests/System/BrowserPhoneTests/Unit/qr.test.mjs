// The decoder of QR codes, against codes that qrencode has drawn, upright and as a camera sees
// them.
import { test } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { asset } from "./assets.mjs";

const { readCode } = await import(asset("qr.js"));
const { readGrid } = await import(asset("qr-grid.js"));

const isInstalled = spawnSync("qrencode", ["--version"]).status === 0;
const skip = isInstalled ? false : "qrencode is not installed";

/** The modules of a code, as rows of booleans without a margin. */
function modules(text, level, ...more) {
  const { status, stdout } = spawnSync("qrencode", ["-t", "ASCII", "-m", "0", "-l", level, ...more, "-o", "-", "--", text], { encoding: "utf8" });
  assert.equal(status, 0);
  return stdout.split("\n").filter((line) => line !== "").map((line) => [...line].filter((_, at) => at % 2 === 0).map((letter) => letter === "#"));
}

/** Draws modules as a picture, through `place`, which takes a pixel to a place of the code. */
function drawn(rows, { width, height, place, light = 235, dark = 25 }) {
  const data = new Uint8ClampedArray(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const [u, v] = place(x + 0.5, y + 0.5);
      const isDark = rows[Math.floor(v)]?.[Math.floor(u)] ?? false;
      // The light falls from one side, so that no single threshold separates dark from light.
      const shade = 0.35 + (0.65 * x) / width;
      data.fill((isDark ? dark : light) * shade, 4 * (y * width + x), 4 * (y * width + x) + 3);
      data[4 * (y * width + x) + 3] = 255;
    }
  }
  return { data, width, height };
}

const link = "twoefay://enrol?relay=https%3A%2F%2Flogin.example.com%3A8080&website=shop&token=6f0c1e9b5d3a47c2a1f08e7d6b5c4a39"
  + "&code=q3Lr8PZk0uXbT1sVw9Ya&pin=Y8jqGfueMSwWvPxgmFM0uwl05lG6yTFSKTpJib3w0OI&k=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const texts = ["A", "0123456789", "HELLO WORLD 42", "otpauth://totp/Shop:zo%C3%AB?secret=JBSWY3DPEHPK3PXP", "Zoë Müller 漢字", link];

test("the modules of every level are read", { skip }, () => {
  for (const text of texts) {
    for (const level of ["L", "M", "Q", "H"]) {
      const rows = modules(text, level);
      assert.equal(readGrid({ size: rows.length, get: (x, y) => rows[y][x] }), text, `${level} ${text}`);
    }
  }
});

test("every version is read", { skip }, () => {
  for (let version = 1; version <= 40; version += 1) {
    const text = "x".repeat(version === 1 ? 5 : version * 20 - 20);
    const rows = modules(text, "L", "-v", String(version));
    assert.equal(rows.length, version * 4 + 17);
    assert.equal(readGrid({ size: rows.length, get: (x, y) => rows[y][x] }), text, `version ${version}`);
  }
});

test("faults are corrected, and too many are no text", { skip }, () => {
  const rows = modules(link, "M");
  const size = rows.length;
  const spoilt = (count) => {
    const copy = rows.map((row) => [...row]);
    for (let at = 0; at < count; at += 1) {
      const [x, y] = [9 + ((at * 7) % (size - 18)), 9 + Math.floor((at * 7) / (size - 18)) % (size - 18)];
      copy[y][x] = !copy[y][x];
    }
    return readGrid({ size, get: (x, y) => copy[y][x] });
  };
  assert.equal(spoilt(12), link);
  assert.notEqual(spoilt(400), link);
});

test("codes are found in a picture: upright, turned and in perspective", { skip }, () => {
  for (const text of texts) {
    const rows = modules(text, "M");
    const size = rows.length;
    const upright = drawn(rows, { width: 480, height: 400, place: (x, y) => [((x - 90) * size) / 300, ((y - 50) * size) / 300] });
    assert.equal(readCode(upright), text, `upright: ${text}`);
    for (const degrees of [12, 45, 100, 200]) {
      const [c, s] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
      const turned = drawn(rows, {
        width: 640, height: 480,
        place: (x, y) => [((x - 320) * c + (y - 240) * s) * (size / 290) + size / 2, (-(x - 320) * s + (y - 240) * c) * (size / 290) + size / 2],
      });
      assert.equal(readCode(turned), text, `turned by ${degrees}: ${text}`);
    }
    const tilted = drawn(rows, {
      width: 640, height: 480,
      place: (x, y) => {
        const w = 1 + 0.0003 * (x - 320) + 0.0002 * (y - 240);
        return [((x - 320) / w) * (size / 300) + size / 2, ((y - 240) / w) * (size / 300) + size / 2];
      },
    });
    // The smallest code has no alignment pattern, which shows the perspective.
    if (size > 21) assert.equal(readCode(tilted), text, `tilted: ${text}`);
  }
});

test("a picture without a code has no text", () => {
  const empty = drawn([], { width: 320, height: 240, place: () => [-1, -1] });
  assert.equal(readCode(empty), null);
});
