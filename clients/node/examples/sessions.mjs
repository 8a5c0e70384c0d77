/**
 * Sessions in the memory of one process, in the form of express-session, so that the example needs
 * no further package. A website uses express-session with a store of its own in this place.
 */

import { randomBytes } from "node:crypto";

const COOKIE = /(?:^|; )session=([\w-]{32})(?:;|$)/;
const known = new Map(); // the values of each session as JSON: each request has its own copy

export function sessions(request, response, next) {
  const [, given] = COOKIE.exec(request.headers.cookie ?? "") ?? [];
  let id, loaded;

  function begin(values) {
    id = randomBytes(24).toString("base64url");
    // Secure: browsers take the cookie over HTTPS, and from localhost.
    response.cookie("session", id, { httpOnly: true, sameSite: "lax", secure: true, path: "/" });
    use(values);
  }

  function use(values) {
    request.session = Object.defineProperty(values, "regenerate", { value: regenerate });
  }

  function regenerate(done) {
    known.delete(id);
    loaded = undefined;
    begin({});
    done();
  }

  if (known.has(given)) {
    id = given;
    loaded = known.get(id);
    use(JSON.parse(loaded));
  } else {
    begin({});
  }
  const { end } = response;
  response.end = (...values) => {
    const text = JSON.stringify(request.session);
    // Unchanged values are not kept again: another request may have ended this session.
    if (text !== loaded) known.set(id, text);
    return end.apply(response, values);
  };
  next();
}
