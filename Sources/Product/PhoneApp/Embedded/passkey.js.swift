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

            /** The most characters that a credential's id may have in the claim `webauthn`. */
            const longestID = 256;

            /**
             * Makes the credential of one enrolment: {rp, id, jwk}. Throws if the person cancels, or if the
             * authenticator makes no key for ES256, or one whose id is too long for the protocol.
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
              const id = encode(credential.rawId);
              if (id.length > longestID) throw new Error("the id of the key is too long");
              return { rp: location.hostname, id, jwk: await jwkOf(key) };
            }

            /**
             * Checks the owner for a signed decision, and returns the assertion over it. The challenge is the
             * SHA-256 of what the phone's key has signed. Throws if the person cancels, if the credential is
             * gone, or if the authenticator did not verify its owner.
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
              // The flags of presence and verification: without both, the relay counts no check.
              if ((new Uint8Array(response.authenticatorData)[32] & 5) !== 5) throw new Error("the owner was not verified");
              return {
                authenticator_data: encode(response.authenticatorData),
                client_data: encode(response.clientDataJSON),
                signature: encode(response.signature),
              };
            }

            """#)
}
