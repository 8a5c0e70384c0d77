// The service worker: keeps the version of the app that the person accepted, and shows pushes. It
// has no key and never answers a request.
//
// The cache `twoefay-accepted` has one entry, the accepted /phone/config.json, whose digest names
// the cache with its files. A new worker serves the same files: only the person changes the
// version.

const pointer = "twoefay-accepted";
const configPath = "/phone/config.json";
const page = "/phone/index.html";

const base64url = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const digest = async (bytes) => base64url(await crypto.subtle.digest("SHA-256", bytes));
const nameOf = async (text) => `twoefay-${await digest(new TextEncoder().encode(text))}`;

self.addEventListener("install", (event) => {
  event.waitUntil((async () => {
    if (!(await accepted())) await load(await offered());
  })());
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { origin, pathname } = new URL(event.request.url);
  if (origin !== location.origin || !pathname.startsWith("/phone/") || event.request.method !== "GET") return;
  event.respondWith(serve(event.request, pathname));
});

async function serve(request, pathname) {
  const text = await accepted();
  const files = text && (await caches.open(await nameOf(text)));
  if (files && pathname === configPath) return new Response(text, { headers: { "content-type": "application/json" } });
  const path = request.mode === "navigate" ? page : pathname;
  return (await files?.match(path)) ?? fetch(request);
}

/** The text of the accepted config, or null before the first one. */
async function accepted() {
  const kept = await (await caches.open(pointer)).match(configPath);
  return kept ? kept.text() : null;
}

async function offered() {
  const response = await fetch(configPath, { cache: "no-store" });
  if (!response.ok) throw new Error(`the app's server answered ${response.status}`);
  return response.text();
}

/** Loads all files of a version, and checks each against its hash, before anything changes. */
async function load(text) {
  const { files } = JSON.parse(text);
  const name = await nameOf(text);
  const cache = await caches.open(name);
  try {
    if (!(page in files)) throw new Error("the version has no page");
    await Promise.all(Object.entries(files).map(async ([path, hash]) => {
      const response = await fetch(path, { cache: "no-store" });
      const bytes = await response.arrayBuffer();
      if (!response.ok || (await digest(bytes)) !== hash) throw new Error(`${path} is not the file of this version`);
      // The worker itself is the browser's to load.
      if (path !== "/phone/worker.js") await cache.put(path, new Response(bytes, { headers: keptHeaders(response) }));
    }));
  } catch (error) {
    await caches.delete(name);
    throw error;
  }
  await (await caches.open(pointer)).put(configPath, new Response(text));
  for (const old of await caches.keys()) {
    if (old.startsWith("twoefay-") && old !== pointer && old !== name) await caches.delete(old);
  }
}

/** The fields of a file, such as its policy, without those of its transfer. */
function keptHeaders(response) {
  const headers = new Headers(response.headers);
  for (const name of ["content-encoding", "content-length", "transfer-encoding"]) headers.delete(name);
  return headers;
}

/** What the person accepts. A release that changes none of it has only another name. */
function content(text) {
  const { files, relays } = JSON.parse(text);
  return JSON.stringify([files, relays]);
}

self.addEventListener("message", (event) => {
  const [port] = event.ports;
  event.waitUntil(answer(event.data).then(
    (data) => port.postMessage(data), (error) => port.postMessage({ error: error.message })));
});

async function answer({ kind, name }) {
  const [old, text] = [await accepted(), await offered()];
  if (kind === "update") {
    const isNew = !old || content(old) !== content(text);
    return { old: old && JSON.parse(old), config: JSON.parse(text), name: await nameOf(text), isNew };
  }
  // The person accepted what the page showed, and nothing that came afterwards.
  if (kind !== "accept" || (await nameOf(text)) !== name) throw new Error("the version has changed since it was shown");
  await load(text);
  return {};
}

self.addEventListener("push", (event) => event.waitUntil(ring(event.data)));

async function ring(data) {
  const push = read(data);
  const texts = await textsOf(await language());
  const fill = (key) => (texts[key] ?? texts.TWOEFAY_LOGIN).replace(/\{(\d)\}/g, (whole, at) => String(push["loc-args"]?.[at] ?? ""));
  const isRequest = typeof push.challenge === "string";
  const key = /^TWOEFAY_LOGIN[A-Z_]*$/.test(push["loc-key"] ?? "") ? push["loc-key"] : "TWOEFAY_LOGIN";
  const title = typeof push.title === "string" ? push.title : texts.TWOEFAY_TITLE;
  await self.registration.showNotification(title, {
    body: fill(key),
    // A repetition takes the place of what it repeats.
    tag: isRequest ? push.challenge : "twoefay",
    requireInteraction: true,
    icon: "/phone/icon-192.png",
    lang: texts.tag,
    // It opens the request. No action approves: the person must first see the whole of it.
    actions: [{ action: "open", title: texts.open }],
    data: { challenge: isRequest ? push.challenge : null },
  });
  for (const client of await self.clients.matchAll({ type: "window" })) client.postMessage({ kind: "wake" });
}

function read(data) {
  try {
    const value = data?.json();
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

async function textsOf(tag) {
  return (await serve(new Request(`/phone/texts.${tag}.json`), `/phone/texts.${tag}.json`)).json();
}

/** The language that the person chose, or that of the browser. */
async function language() {
  const fallback = (navigator.languages ?? [navigator.language]).some((tag) => tag.startsWith("de")) ? "de" : "en";
  return new Promise((resolve) => {
    const request = indexedDB.open("twoefay-phone");
    request.onerror = () => resolve(fallback);
    // Opened before the page made it: leave that to the page.
    request.onupgradeneeded = () => request.transaction.abort();
    request.onsuccess = () => {
      const database = request.result;
      const asked = database.transaction("settings").objectStore("settings").get("language");
      asked.onsuccess = () => resolve(["en", "de"].includes(asked.result?.value) ? asked.result.value : fallback);
      asked.onerror = () => resolve(fallback);
      asked.transaction.oncomplete = () => database.close();
    };
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { challenge } = event.notification.data ?? {};
  event.waitUntil((async () => {
    const [open] = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (!open) return self.clients.openWindow(challenge ? `/phone/#open=${encodeURIComponent(challenge)}` : "/phone/");
    await open.focus();
    return open.postMessage({ kind: "open", challenge });
  })());
});

self.addEventListener("pushsubscriptionchange", (event) => {
  // The page sends the new one when it is opened next: only the page's key can sign it.
  const options = event.oldSubscription?.options;
  if (options) event.waitUntil(self.registration.pushManager.subscribe(options));
});
