// The public key of a private key of P-256. Web Crypto has no operation for it: it imports a
// private key only together with its public key. Only the keys of PINs need this, and only on the
// phone of the person who types the PIN; the running time depends on the key.

import { encode } from "./bytes.js";

const p = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
/** The order of the base point. */
export const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const base = {
  x: 0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296n,
  y: 0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5n,
};

const modulo = (value) => ((value % p) + p) % p;

function inverse(value) {
  let [a, b, x, y] = [modulo(value), p, 1n, 0n];
  while (a > 1n) {
    const quotient = b / a;
    [a, b] = [b - quotient * a, a];
    [x, y] = [y - quotient * x, x];
    if (a === 0n) throw new Error("zero has no inverse");
  }
  return modulo(x);
}

/** Doubles a point in Jacobian coordinates (a = −3). */
function double({ x, y, z }) {
  const delta = modulo(z * z);
  const gamma = modulo(y * y);
  const beta = modulo(x * gamma);
  const alpha = modulo(3n * (x - delta) * (x + delta));
  const x3 = modulo(alpha * alpha - 8n * beta);
  return {
    x: x3,
    y: modulo(alpha * (4n * beta - x3) - 8n * gamma * gamma),
    z: modulo((y + z) * (y + z) - gamma - delta),
  };
}

/** Adds the base point to another point that is neither it nor its negative. */
function addBase(one) {
  const zz = modulo(one.z * one.z);
  const h = modulo(base.x * zz - one.x);
  const r = modulo(base.y * zz * one.z - one.y);
  const hh = modulo(h * h);
  const hhh = modulo(h * hh);
  const v = modulo(one.x * hh);
  const x = modulo(r * r - hhh - 2n * v);
  return { x, y: modulo(r * (v - x) - one.y * hhh), z: modulo(one.z * h) };
}

const bytesOf = (value) => Uint8Array.from({ length: 32 }, (_, at) => Number((value >> BigInt(8 * (31 - at))) & 0xffn));
const textOf = (value) => encode(bytesOf(value));

/** The JWK of a private key 0 < d < n, with its public key. */
export function keyPair(d) {
  if (d <= 0n || d >= order) throw new Error("it is not a private key");
  const bits = d.toString(2);
  let point = { ...base, z: 1n };
  for (const bit of bits.slice(1)) {
    point = double(point);
    // The point is kG with 2 <= k < n - 1 here, so it is neither G nor -G nor zero.
    if (bit === "1") point = addBase(point);
  }
  const z = inverse(point.z);
  const zz = modulo(z * z);
  return { crv: "P-256", kty: "EC", x: textOf(modulo(point.x * zz)), y: textOf(modulo(point.y * zz * z)), d: textOf(d) };
}
