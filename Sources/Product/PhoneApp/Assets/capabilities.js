// Checks whether this browser can run the app, and whether a phone that it binds would last.

/** The first thing that this app needs and this browser has not: the name of a text, or null. */
export async function missing(scope = globalThis) {
  if (!scope.isSecureContext) return "needsSecure";
  if (!scope.crypto?.subtle) return "needsCrypto";
  if (!scope.indexedDB) return "needsStorage";
  if (!scope.navigator.serviceWorker) return "needsWorker";
  try {
    const key = await scope.crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
    await scope.crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, key.privateKey, new Uint8Array(1));
  } catch {
    return "needsCrypto";
  }
  return null;
}

export const isIOS = ({ userAgent, platform, maxTouchPoints } = navigator) =>
  /iP(hone|ad|od)/.test(userAgent) || (platform === "MacIntel" && maxTouchPoints > 1);

/** Whether the app was started from the home screen, and not in a tab of the browser. */
export const isInstalled = (scope = globalThis) =>
  scope.navigator.standalone === true || scope.matchMedia("(display-mode: standalone)").matches;

/**
 * Whether the app has to be installed before it binds a phone: on iOS an installed app has its own
 * storage, and does not find the keys that a tab has made.
 */
export const mustInstallFirst = (scope = globalThis) => isIOS(scope.navigator) && !isInstalled(scope);

/** The name of the operating system, as far as the browser says it. */
export function systemName({ userAgent, platform, maxTouchPoints, userAgentData } = navigator) {
  if (isIOS({ userAgent, platform, maxTouchPoints })) return "iOS";
  if (userAgentData?.platform) return userAgentData.platform.slice(0, 32);
  return ["Android", "Windows", "Mac OS", "Linux"].find((name) => userAgent.includes(name)) ?? null;
}
