// The languages have the same keys and values to fill in, and every text that the app names exists.
import { test } from "node:test";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { assets } from "./assets.mjs";

const table = (tag) => JSON.parse(readFileSync(join(assets, `texts.${tag}.json`), "utf8"));
const [english, german] = [table("en"), table("de")];
const sources = readdirSync(assets).filter((name) => name.endsWith(".js")).map((name) => [name, readFileSync(join(assets, name), "utf8")]);

test("both languages have the same texts in the same order, with the same values", () => {
  assert.deepEqual(Object.keys(german), Object.keys(english));
  const values = (text) => [...text.matchAll(/\{\w+\}/g)].map(([one]) => one).sort();
  for (const [name, text] of Object.entries(english)) {
    assert.deepEqual(values(german[name]), values(text), name);
    assert.notEqual(text.trim(), "", name);
  }
});

test("every text that the app names exists", () => {
  for (const [name, source] of sources) {
    for (const [, key] of source.matchAll(/\bt\("([^"]+)"/g)) assert.ok(key in english, `${name}: ${key}`);
  }
});

test("every text is named somewhere", () => {
  const all = sources.map(([, source]) => source).join("");
  const composed = /^(tag$|TWOEFAY_|lost-|notify-|unboundBy-|pin-|own-|platform-|kind-|outcome-|reason-)/;
  for (const name of Object.keys(english)) assert.ok(composed.test(name) || all.includes(`"${name}"`), name);
});

test("every loc-key of the protocol has a text", () => {
  const ends = ["", "_SERVICE", "_PLACE", "_IP", "_SERVICE_PLACE", "_SERVICE_IP", "_PLACE_IP", "_SERVICE_PLACE_IP"];
  for (const end of ends) {
    const count = end.split("_").length - 1;
    const places = [...english[`TWOEFAY_LOGIN${end}`].matchAll(/\{(\d)\}/g)].map(([, at]) => Number(at));
    assert.deepEqual(places, Array.from({ length: count }, (_, at) => at), end);
  }
});

test("no file makes markup from texts, and none is longer than 300 lines", () => {
  const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|\beval\(|new Function|srcdoc|\.style\b|"style"/;
  for (const name of readdirSync(assets).filter((one) => /\.(js|css|html|json)$/.test(one))) {
    const text = readFileSync(join(assets, name), "utf8");
    assert.ok(text.split("\n").length <= 301, name);
    assert.doesNotMatch(text, forbidden, name);
    // Nothing comes from elsewhere.
    assert.doesNotMatch(text.replaceAll("http://www.w3.org/2000/svg", ""), /https?:\/\/[a-z]/, name);
    if (name.endsWith(".html")) assert.doesNotMatch(text, /\sstyle=|<style|<script(?! type="module" src="\/phone\/)|\son[a-z]+=/, name);
  }
});
