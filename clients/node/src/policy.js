/** What a website requires of a login and its proof. The defaults are the strong form. */

import { VERIFICATIONS } from "./login.js";
import { isSameHost, pageHost } from "./webphones.js";

/** No challenge lives longer, so a later approval was held back. In seconds. */
export const LONGEST_LIFE = 600;

export const MOST_DIGITS = 6;

const PHONES = ["any", "native", "web"];

/** The requirements of one website at one relay. */
export function makePolicy({
  origin, website, displayName = null, leastUserVerification = "none",
  longestVerificationAge = null, leastDigits = 2, allowUnpinned = false, acceptCodes = false,
  phones = "any", appOrigin = null, loginOrigins = [],
}) {
  const isCount = (value, most) => Number.isSafeInteger(value) && value >= 0 && value <= most;
  requireOption("displayName", displayName === null || typeof displayName === "string");
  requireOption("leastUserVerification", VERIFICATIONS.includes(leastUserVerification));
  requireOption("longestVerificationAge",
    longestVerificationAge === null || isCount(longestVerificationAge, Number.MAX_SAFE_INTEGER));
  // 0 only if the website's policy needs no number: a dishonest relay could leave it out.
  requireOption("leastDigits", isCount(leastDigits, MOST_DIGITS));
  // Strictly: the text "false" of an environment variable would be true.
  requireOption("allowUnpinned", typeof allowUnpinned === "boolean");
  requireOption("acceptCodes", typeof acceptCodes === "boolean");
  requireOption("phones", PHONES.includes(phones));
  // In a page of the relay's host, the relay could read `k`.
  requireOption("appOrigin",
    appOrigin === null || (pageHost(appOrigin) !== null && !isSameHost(appOrigin, origin)));
  const areOrigins = Array.isArray(loginOrigins)
    && loginOrigins.every((own) => pageHost(own) !== null);
  requireOption("loginOrigins", areOrigins);
  return Object.freeze({
    origin, website, displayName, leastUserVerification, longestVerificationAge, leastDigits,
    allowUnpinned, acceptCodes, phones, appOrigin, loginOrigins: Object.freeze([...loginOrigins]),
    audience: `${origin}#${website}`,
  });
}

/** Whether the website accepts a web phone of this page. */
export function acceptsApp({ origin, appOrigin }, app) {
  return appOrigin === null ? !isSameHost(app, origin) : app === appOrigin;
}

/** Whether a page is known to be of another host than those where users type their passwords. */
export function isApart({ loginOrigins }, app) {
  return loginOrigins.length > 0 && !loginOrigins.some((own) => isSameHost(app, own));
}

function requireOption(name, holds) {
  if (!holds) throw new TypeError(`the option ${name} has a wrong value`);
}

/** Refuses options with other names: a typing error must not weaken anything. */
export function requireNames(options, names) {
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw new TypeError(`there is no option ${name}`);
  }
}
