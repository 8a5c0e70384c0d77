// Written by dev/embed-pages from Assets/passkey.js. Do not edit.
extension AppFile {
    static let passkeyJS = AppFile(
        "passkey.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The check of the owner by WebAuthn: a credential for each enrolment, whose public key stands in
            // the proof and in the binding, and whose assertion over the decision goes beside it.

            import { decode, encode, utf8 } from "./bytes.js";
            import { digest, jwkOf, signingInput } from "./signing.js";

            /** Whether this device can check its owner: by a fingerprint, a face or the lock of its screen. */
            export async function canCheckOwner(scope = globalThis) {
              try {
                return await scope.PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable();
              } catch {
                return false;
              }
            }

            /**
             * Makes the credential of one enrolment: {origin, rp, id, jwk}. Throws if the person cancels, or if
             * the authenticator makes no key for ES256.
             */
            export async function makePasskey(name, { location = globalThis.location, credentials = navigator.credentials } = {}) {
              const credential = await credentials.create({
                publicKey: {
                  rp: { id: location.hostname, name: "Twoefay" },
                  user: { id: crypto.getRandomValues(new Uint8Array(32)), name, displayName: name },
                  // The attestation is not asked for, so nothing checks this challenge.
                  challenge: crypto.getRandomValues(new Uint8Array(32)),
                  pubKeyCredParams: [{ type: "public-key", alg: -7 }],
                  authenticatorSelection: {
                    authenticatorAttachment: "platform", residentKey: "discouraged", userVerification: "required",
                  },
                  attestation: "none",
                  timeout: 120_000,
                },
              });
              const { response } = credential;
              const spki = response.getPublicKeyAlgorithm() === -7 ? response.getPublicKey() : null;
              if (!spki) throw new Error("the authenticator made no key for ES256");
              const key = await crypto.subtle.importKey("spki", spki, { name: "ECDSA", namedCurve: "P-256" }, true, ["verify"]);
              return { origin: location.origin, rp: location.hostname, id: encode(credential.rawId), jwk: await jwkOf(key) };
            }

            /**
             * Checks the owner for a signed decision, and returns the assertion over it. The challenge is the
             * SHA-256 of what the phone's key has signed. Throws if the person cancels.
             */
            export async function assertOwner(passkey, jws, { credentials = navigator.credentials } = {}) {
              const { response } = await credentials.get({
                publicKey: {
                  rpId: passkey.rp,
                  challenge: await digest(utf8(signingInput(jws))),
                  allowCredentials: [{ type: "public-key", id: decode(passkey.id) }],
                  userVerification: "required",
                  timeout: 120_000,
                },
              });
              return {
                authenticator_data: encode(response.authenticatorData),
                client_data: encode(response.clientDataJSON),
                signature: encode(response.signature),
              };
            }

            """#)
}
