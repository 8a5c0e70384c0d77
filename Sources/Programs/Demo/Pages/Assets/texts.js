// What the phone says, in English and German.

const english = {
  phone: "Phone {n}", accounts: "Accounts", codes: "Codes", messages: "Messages", settings: "Settings",
  tabs: "Parts of this phone", notification: "Notification", skip: "To the screen",
  offline: "This phone is offline. What is asked now reaches it when it is back.",
  relayLost: "The relay cannot be reached. Trying again …",
  gone: "The demo does not answer. Has it ended? Trying again …",
  noAccounts: "No website is bound to this phone yet. Open “My phones” on the website, and scan what it shows there.",
  scan: "Scan what the website shows", paste: "Paste an address instead", address: "Address (twoefay:… or otpauth:…)",
  add: "Add", cancel: "Cancel", done: "Done", back: "Back", open: "Open", dismiss: "Dismiss", save: "Save", goOn: "Go on",
  look: "Look for requests", looked: "Nothing is asked.", requests: "Requests", nothingToScan: "The website shows no code now. Open “My phones” or its page for codes there.",
  bound: "bound", waiting: "not bound yet", refusedState: "suspended or unbound", at: "at {relay}",
  badAddress: "This is no activation: {why}.", otherRelay: "This activation is for another relay ({relay}) than the demo's. It is not used.",
  bind: "Bind this phone?", bindText: "From then on, {website} asks this phone whether it is you.", website: "Website", relay: "Relay",
  name: "Name of this phone", nameHint: "The website shows it to you. 64 characters at most.", bindIt: "Bind this phone",
  binding: "Binding …", isBound: "This phone is bound", boundText: "{website} will ask it whether it is you.",
  revocation: "Code to unbind a lost phone", revocationHint: "Write it down elsewhere. It is shown once, and not kept here.",
  waits: "Approve this phone", waitsText: "Another phone of yours is bound already. Open the request there, compare the key, and type this number:",
  key: "Key of this phone", stillTrying: "No answer from the relay. Trying again …",
  enrolRefused: "The code is used up, too old, or refused. Ask the website for a new one.",
  enrolFull: "You have as many phones as the website allows. Unbind one first; the code stays good.",
  enrolOver: "Nobody has approved this phone in time. Ask the website for a new code.", notBound: "This phone is not bound",
  failed: "That did not work: {why}.", slow: "Too many attempts. Try again in {seconds} seconds.",
  isThisYou: "Is this you?", agree: "Do you agree?", approvePhone: "Add this to your account?",
  asks: "{website} asks", account: "Account", service: "Service", action: "Action", device: "Phone to be bound",
  place: "Place", ip: "Address", userAgent: "With", askedAt: "Asked at", timeLeft: "Time left: {time}",
  enrolKey: "Compare the key with what the new phone shows.", enrolHint: "It can let people into your account at {website} from then on. Approve only what you have begun yourself.",
  number: "Number that the website shows", numberWrong: "The website shows a number with {digits} digits.",
  approve: "Approve", deny: "Reject", fraud: "This wasn't me",
  fraudTitle: "Was it somebody else?", fraudText: "The login is refused, and every way into your account at {website} is frozen until that is lifted there.",
  fraudYes: "Yes, freeze my account", sending: "Signing and sending …", sendingAgain: "No answer from the relay. The same answer is sent again …",
  approved: "Approved", approvedText: "{website} is told that it is you.",
  wrongNumber: "Wrong number", wrongNumberText: "It was another number than the website shows, so the login is refused. Start it again there.",
  denied: "Rejected", deniedText: "The login at {website} is refused.",
  frozen: "Reported", frozenText: "The login is refused and your account at {website} is frozen. Whoever it was knows your password: change it.",
  over: "Over", overText: "This request is not open any more.", decided: "Decided already", decidedText: "Another answer was faster: {login}.",
  success: "approved", failure: "refused", hidden: "A request cannot be shown, and not be answered here: {why}.",
  noCodes: "No code yet. Add one on the website's page for codes, and scan what it shows.", secondsLeft: "{seconds} s left",
  removeCode: "Remove the code for {issuer}", removeCodeText: "Without it you cannot log in by code any more.", remove: "Remove", codeFor: "Code for {issuer}, {account}",
  noMessages: "No messages. Text messages and mails that the relay sends arrive here.", sms: "Text message", mail: "Mail", from: "from {from}", to: "to {to}",
  language: "Language", rename: "Name at {website}", renamed: "Saved.", unbind: "Unbind", unbindTitle: "Unbind this phone?",
  unbindText: "{website} will not ask this phone any more, and its key is removed.", removeAccount: "Remove from this phone",
  about: "A phone of the Twoefay demo: its keys are made here by your browser, and cannot be read by anybody.",
  TWOEFAY_TITLE: "A login", TWOEFAY_LOGIN: "Is this you?", TWOEFAY_LOGIN_SERVICE: "Is this you, at {0}?", TWOEFAY_LOGIN_PLACE: "Is this you, from {0}?",
  TWOEFAY_LOGIN_IP: "Is this you, from {0}?", TWOEFAY_LOGIN_SERVICE_PLACE: "Is this you, at {0}, from {1}?", TWOEFAY_LOGIN_SERVICE_IP: "Is this you, at {0}, from {1}?",
  TWOEFAY_LOGIN_PLACE_IP: "Is this you, from {0} ({1})?", TWOEFAY_LOGIN_SERVICE_PLACE_IP: "Is this you, at {0}, from {1} ({2})?",
};

const german = {
  phone: "Telefon {n}", accounts: "Konten", codes: "Codes", messages: "Nachrichten", settings: "Einstellungen",
  tabs: "Teile dieses Telefons", notification: "Mitteilung", skip: "Zum Bildschirm",
  offline: "Dieses Telefon ist offline. Was jetzt gefragt wird, erreicht es, wenn es wieder da ist.",
  relayLost: "Das Relay ist nicht zu erreichen. Neuer Versuch …",
  gone: "Die Demo antwortet nicht. Ist sie beendet? Neuer Versuch …",
  noAccounts: "Noch ist keine Website an dieses Telefon gebunden. Öffnen Sie „Meine Telefone“ auf der Website, und scannen Sie, was dort steht.",
  scan: "Scannen, was die Website zeigt", paste: "Stattdessen eine Adresse einfügen", address: "Adresse (twoefay:… oder otpauth:…)",
  add: "Hinzufügen", cancel: "Abbrechen", done: "Fertig", back: "Zurück", open: "Öffnen", dismiss: "Ausblenden", save: "Speichern", goOn: "Weiter",
  look: "Nach Anfragen sehen", looked: "Es wird nichts gefragt.", requests: "Anfragen", nothingToScan: "Die Website zeigt gerade keinen Code. Öffnen Sie dort „Meine Telefone“ oder die Seite für Codes.",
  bound: "gebunden", waiting: "noch nicht gebunden", refusedState: "gesperrt oder getrennt", at: "bei {relay}",
  badAddress: "Das ist keine Aktivierung: {why}.", otherRelay: "Diese Aktivierung ist für ein anderes Relay ({relay}) als das der Demo. Sie wird nicht benutzt.",
  bind: "Dieses Telefon binden?", bindText: "Von da an fragt {website} dieses Telefon, ob Sie es sind.", website: "Website", relay: "Relay",
  name: "Name dieses Telefons", nameHint: "Die Website zeigt ihn Ihnen. Höchstens 64 Zeichen.", bindIt: "Dieses Telefon binden",
  binding: "Wird gebunden …", isBound: "Dieses Telefon ist gebunden", boundText: "{website} wird es fragen, ob Sie es sind.",
  revocation: "Code, um ein verlorenes Telefon zu trennen", revocationHint: "Schreiben Sie ihn anderswo auf. Er wird einmal gezeigt und hier nicht aufgehoben.",
  waits: "Bestätigen Sie dieses Telefon", waitsText: "Ein anderes Telefon ist schon gebunden. Öffnen Sie dort die Anfrage, vergleichen Sie den Schlüssel, und geben Sie diese Zahl ein:",
  key: "Schlüssel dieses Telefons", stillTrying: "Das Relay antwortet nicht. Neuer Versuch …",
  enrolRefused: "Der Code ist verbraucht, zu alt oder abgelehnt. Lassen Sie sich von der Website einen neuen geben.",
  enrolFull: "Sie haben so viele Telefone, wie die Website erlaubt. Trennen Sie erst eines; der Code bleibt gültig.",
  enrolOver: "Niemand hat dieses Telefon rechtzeitig bestätigt. Lassen Sie sich einen neuen Code geben.", notBound: "Dieses Telefon ist nicht gebunden",
  failed: "Das ging nicht: {why}.", slow: "Zu viele Versuche. Noch einmal in {seconds} Sekunden.",
  isThisYou: "Sind Sie das?", agree: "Stimmen Sie zu?", approvePhone: "Das zu Ihrem Konto hinzufügen?",
  asks: "{website} fragt", account: "Konto", service: "Dienst", action: "Vorgang", device: "Neues Telefon",
  place: "Ort", ip: "Adresse", userAgent: "Mit", askedAt: "Gefragt um", timeLeft: "Noch {time}",
  enrolKey: "Vergleichen Sie den Schlüssel mit dem, den das neue Telefon zeigt.", enrolHint: "Damit kommt man von da an in Ihr Konto bei {website}. Bestätigen Sie nur, was Sie selbst begonnen haben.",
  number: "Zahl, die die Website zeigt", numberWrong: "Die Website zeigt eine Zahl mit {digits} Ziffern.",
  approve: "Bestätigen", deny: "Ablehnen", fraud: "Das war ich nicht",
  fraudTitle: "War es jemand anderes?", fraudText: "Die Anmeldung wird abgelehnt, und jeder Weg in Ihr Konto bei {website} ist eingefroren, bis das dort aufgehoben wird.",
  fraudYes: "Ja, mein Konto einfrieren", sending: "Wird unterschrieben und gesendet …", sendingAgain: "Das Relay antwortet nicht. Dieselbe Antwort wird noch einmal gesendet …",
  approved: "Bestätigt", approvedText: "{website} erfährt, dass Sie es sind.",
  wrongNumber: "Falsche Zahl", wrongNumberText: "Es war eine andere Zahl als die der Website, darum ist die Anmeldung abgelehnt. Beginnen Sie dort noch einmal.",
  denied: "Abgelehnt", deniedText: "Die Anmeldung bei {website} ist abgelehnt.",
  frozen: "Gemeldet", frozenText: "Die Anmeldung ist abgelehnt und Ihr Konto bei {website} eingefroren. Wer immer es war, kennt Ihr Passwort: Ändern Sie es.",
  over: "Vorbei", overText: "Diese Anfrage ist nicht mehr offen.", decided: "Schon entschieden", decidedText: "Eine andere Antwort war schneller: {login}.",
  success: "bestätigt", failure: "abgelehnt", hidden: "Eine Anfrage kann hier nicht gezeigt und nicht beantwortet werden: {why}.",
  noCodes: "Noch kein Code. Fügen Sie auf der Seite für Codes der Website einen hinzu, und scannen Sie, was sie zeigt.", secondsLeft: "noch {seconds} s",
  removeCode: "Code für {issuer} entfernen", removeCodeText: "Ohne ihn können Sie sich nicht mehr mit Code anmelden.", remove: "Entfernen", codeFor: "Code für {issuer}, {account}",
  noMessages: "Keine Nachrichten. SMS und Mails, die das Relay schickt, kommen hier an.", sms: "SMS", mail: "Mail", from: "von {from}", to: "an {to}",
  language: "Sprache", rename: "Name bei {website}", renamed: "Gespeichert.", unbind: "Trennen", unbindTitle: "Dieses Telefon trennen?",
  unbindText: "{website} fragt dieses Telefon nicht mehr, und sein Schlüssel wird entfernt.", removeAccount: "Von diesem Telefon entfernen",
  about: "Ein Telefon der Twoefay-Demo: Seine Schlüssel macht Ihr Browser hier, und niemand kann sie lesen.",
  TWOEFAY_TITLE: "Eine Anmeldung", TWOEFAY_LOGIN: "Sind Sie das?", TWOEFAY_LOGIN_SERVICE: "Sind Sie das, bei {0}?", TWOEFAY_LOGIN_PLACE: "Sind Sie das, aus {0}?",
  TWOEFAY_LOGIN_IP: "Sind Sie das, von {0}?", TWOEFAY_LOGIN_SERVICE_PLACE: "Sind Sie das, bei {0}, aus {1}?", TWOEFAY_LOGIN_SERVICE_IP: "Sind Sie das, bei {0}, von {1}?",
  TWOEFAY_LOGIN_PLACE_IP: "Sind Sie das, aus {0} ({1})?", TWOEFAY_LOGIN_SERVICE_PLACE_IP: "Sind Sie das, bei {0}, aus {1} ({2})?",
};

const tables = { en: english, de: german };
export const languages = [["en", "English"], ["de", "Deutsch"]];

let chosen = localStorage.getItem("language") ?? navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in tables);
if (!(chosen in tables)) chosen = "en";

export const language = () => chosen;

export function setLanguage(tag) {
  chosen = tag;
  localStorage.setItem("language", tag);
}

/** The words of that name, with `{value}` filled in. */
export const t = (name, values = {}) =>
  (tables[chosen][name] ?? name).replace(/\{(\w+)\}/g, (whole, value) => (value in values ? String(values[value]) : whole));

export const isKnown = (name) => Object.hasOwn(english, name);

export const timeOf = (moment) =>
  new Intl.DateTimeFormat(chosen, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(moment));
