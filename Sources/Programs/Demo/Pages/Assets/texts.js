// The texts of the phone, in English and German.

const english = {
  phone: "Phone {n}", accounts: "Accounts", codes: "Codes", messages: "Messages", settings: "Settings",
  tabs: "Sections of this phone", notification: "Notification", skip: "Skip to content",
  offline: "This phone is offline. It gets new requests when it is online again.",
  relayLost: "The relay cannot be reached. Trying again …",
  gone: "The demo does not answer. Has it ended? Trying again …",
  noAccounts: "No accounts yet. Open “My phones” on the website, and scan the code there.",
  scan: "Scan the code on the website", paste: "Paste a link instead", address: "Link (twoefay:… or otpauth:…)",
  add: "Add", cancel: "Cancel", done: "Done", back: "Back", open: "Open", dismiss: "Dismiss", save: "Save", goOn: "Continue",
  look: "Check for requests", looked: "There are no requests.", requests: "Requests", nothingToScan: "The website shows no code now. Open “My phones” or “Authenticator app” there.",
  bound: "active", waiting: "waiting for approval", refusedState: "suspended or removed", at: "at {relay}",
  badAddress: "This link cannot be used: {why}.", otherRelay: "This link is for another relay ({relay}) than the demo's. It was not used.",
  bind: "Add this phone?", bindText: "From now on, {website} asks this phone whether a login is yours.", website: "Website", relay: "Relay",
  name: "Name of this phone", nameHint: "The website shows it to you. 64 characters at most.", bindIt: "Add this phone",
  binding: "Adding this phone …", isBound: "Phone added", boundText: "{website} now asks this phone whether a login is yours.",
  revocation: "Code to remove a lost phone", revocationHint: "Write it down and keep it elsewhere. It is shown only once.",
  waits: "Approve this phone", waitsText: "You already have a phone. Open the request there, compare the key, and enter this number:",
  key: "Key of this phone", stillTrying: "The relay does not answer. Trying again …",
  enrolRefused: "This code was used before, is too old, or was refused. Get a new one from the website.",
  enrolFull: "You have as many phones as the website allows. Remove one first; this code stays valid.",
  enrolOver: "This phone was not approved in time. Get a new code from the website.", notBound: "Phone not added",
  failed: "That did not work: {why}.", slow: "Too many attempts. Try again in {seconds} seconds.",
  isThisYou: "Is this you?", agree: "Do you agree?", approvePhone: "Add this to your account?",
  asks: "{website} asks", account: "Account", service: "Service", action: "Action", device: "New phone",
  place: "Place", ip: "IP address", userAgent: "Browser", askedAt: "Time", timeLeft: "Time left: {time}",
  demands: "{website} demands of this phone: {demands}. A browser cannot prove that, so the relay will refuse an approval.",
  enrolKey: "Compare this key with the one on the new phone.", enrolHint: "It can then be used to log in to your account at {website}. Approve only what you have started yourself.",
  number: "Number on the website", numberWrong: "The website shows a number with {digits} digits.",
  approve: "Approve", deny: "Reject", fraud: "This wasn't me",
  fraudTitle: "Was it somebody else?", fraudText: "The request is rejected, and nobody can log in to your account at {website} until it is unlocked there.",
  fraudYes: "Yes, freeze my account", sending: "Signing and sending …", sendingAgain: "The relay does not answer. The same answer is sent again …",
  approved: "Approved", approvedText: "{website} now knows that it is you.",
  wrongNumber: "Wrong number", wrongNumberText: "This is not the number on the website, so the request was rejected. Start again there.",
  denied: "Rejected", deniedText: "The request from {website} was rejected.",
  frozen: "Reported", frozenText: "The request was rejected, and your account at {website} is frozen. Somebody knows your password, so change it.",
  over: "Request closed", overText: "This request is no longer open.", decided: "Already decided", decidedText: "Another answer was faster: {login}.",
  success: "approved", failure: "rejected", hidden: "A request cannot be shown or answered here: {why}.",
  noCodes: "No codes yet. Open “Authenticator app” on the website, and scan the code there.", secondsLeft: "{seconds} s left",
  removeCode: "Remove the code for {issuer}", removeCodeText: "You can then no longer log in with this code.", remove: "Remove", codeFor: "Code for {issuer}, {account}",
  noMessages: "No messages yet. Text messages and emails from the relay arrive here.", sms: "Text message", mail: "Email", from: "from {from}", to: "to {to}",
  language: "Language", rename: "Name at {website}", renamed: "Saved.", unbind: "Remove this phone", unbindTitle: "Remove this phone?",
  unbindText: "{website} no longer asks this phone, and its key is deleted.", removeAccount: "Delete from this phone",
  about: "This phone is part of the Twoefay demo. Your browser makes its keys, and nobody can read them.",
  TWOEFAY_TITLE: "Login request", TWOEFAY_LOGIN: "Is this you?", TWOEFAY_LOGIN_SERVICE: "Is this you, at {0}?", TWOEFAY_LOGIN_PLACE: "Is this you, from {0}?",
  TWOEFAY_LOGIN_IP: "Is this you, from {0}?", TWOEFAY_LOGIN_SERVICE_PLACE: "Is this you, at {0}, from {1}?", TWOEFAY_LOGIN_SERVICE_IP: "Is this you, at {0}, from {1}?",
  TWOEFAY_LOGIN_PLACE_IP: "Is this you, from {0} ({1})?", TWOEFAY_LOGIN_SERVICE_PLACE_IP: "Is this you, at {0}, from {1} ({2})?",
};

const german = {
  phone: "Telefon {n}", accounts: "Konten", codes: "Codes", messages: "Nachrichten", settings: "Einstellungen",
  tabs: "Bereiche dieses Telefons", notification: "Mitteilung", skip: "Zum Inhalt",
  offline: "Dieses Telefon ist offline. Neue Anfragen kommen an, sobald es wieder online ist.",
  relayLost: "Das Relay ist nicht erreichbar. Neuer Versuch …",
  gone: "Die Demo antwortet nicht. Wurde sie beendet? Neuer Versuch …",
  noAccounts: "Noch keine Konten. Öffnen Sie auf der Website „Meine Telefone“ und scannen Sie dort den Code.",
  scan: "Code auf der Website scannen", paste: "Stattdessen einen Link einfügen", address: "Link (twoefay:… oder otpauth:…)",
  add: "Hinzufügen", cancel: "Abbrechen", done: "Fertig", back: "Zurück", open: "Öffnen", dismiss: "Ausblenden", save: "Speichern", goOn: "Weiter",
  look: "Nach Anfragen suchen", looked: "Es gibt keine Anfragen.", requests: "Anfragen", nothingToScan: "Die Website zeigt gerade keinen Code. Öffnen Sie dort „Meine Telefone“ oder „Authenticator-App“.",
  bound: "aktiv", waiting: "wartet auf Bestätigung", refusedState: "gesperrt oder entfernt", at: "bei {relay}",
  badAddress: "Dieser Link funktioniert nicht: {why}.", otherRelay: "Dieser Link gehört zu einem anderen Relay ({relay}) als dem der Demo. Er wurde nicht verwendet.",
  bind: "Dieses Telefon hinzufügen?", bindText: "{website} fragt Sie dann auf diesem Telefon, ob eine Anmeldung von Ihnen ist.", website: "Website", relay: "Relay",
  name: "Name dieses Telefons", nameHint: "So heißt es auf der Website. Höchstens 64 Zeichen.", bindIt: "Telefon hinzufügen",
  binding: "Telefon wird hinzugefügt …", isBound: "Telefon hinzugefügt", boundText: "{website} fragt Sie jetzt auf diesem Telefon, ob eine Anmeldung von Ihnen ist.",
  revocation: "Code, um ein verlorenes Telefon zu entfernen", revocationHint: "Schreiben Sie ihn auf und bewahren Sie ihn anderswo auf. Er wird nur einmal angezeigt.",
  waits: "Dieses Telefon bestätigen", waitsText: "Sie haben schon ein Telefon. Öffnen Sie dort die Anfrage, vergleichen Sie den Schlüssel und geben Sie diese Zahl ein:",
  key: "Schlüssel dieses Telefons", stillTrying: "Das Relay antwortet nicht. Neuer Versuch …",
  enrolRefused: "Dieser Code wurde schon verwendet, ist zu alt oder wurde abgelehnt. Holen Sie sich auf der Website einen neuen.",
  enrolFull: "Sie haben schon so viele Telefone, wie die Website erlaubt. Entfernen Sie zuerst eines; der Code bleibt gültig.",
  enrolOver: "Dieses Telefon wurde nicht rechtzeitig bestätigt. Holen Sie sich auf der Website einen neuen Code.", notBound: "Telefon nicht hinzugefügt",
  failed: "Das hat nicht geklappt: {why}.", slow: "Zu viele Versuche. Versuchen Sie es in {seconds} Sekunden noch einmal.",
  isThisYou: "Sind Sie das?", agree: "Stimmen Sie zu?", approvePhone: "Zu Ihrem Konto hinzufügen?",
  asks: "{website} fragt", account: "Konto", service: "Dienst", action: "Vorgang", device: "Neues Telefon",
  place: "Ort", ip: "IP-Adresse", userAgent: "Browser", askedAt: "Uhrzeit", timeLeft: "Noch {time}",
  demands: "{website} verlangt von diesem Telefon: {demands}. Ein Browser kann das nicht nachweisen; eine Bestätigung wird abgelehnt.",
  enrolKey: "Vergleichen Sie diesen Schlüssel mit dem auf dem neuen Telefon.", enrolHint: "Damit kann man sich dann in Ihrem Konto bei {website} anmelden. Bestätigen Sie nur, was Sie selbst begonnen haben.",
  number: "Zahl auf der Website", numberWrong: "Die Website zeigt eine Zahl mit {digits} Ziffern.",
  approve: "Bestätigen", deny: "Ablehnen", fraud: "Das war ich nicht",
  fraudTitle: "War es jemand anderes?", fraudText: "Die Anfrage wird abgelehnt, und niemand kann sich in Ihrem Konto bei {website} anmelden, bis es dort entsperrt wird.",
  fraudYes: "Ja, mein Konto sperren", sending: "Wird signiert und gesendet …", sendingAgain: "Das Relay antwortet nicht. Dieselbe Antwort wird noch einmal gesendet …",
  approved: "Bestätigt", approvedText: "{website} weiß jetzt, dass Sie es sind.",
  wrongNumber: "Falsche Zahl", wrongNumberText: "Das war nicht die Zahl auf der Website, deshalb wurde die Anfrage abgelehnt. Bitte beginnen Sie dort noch einmal.",
  denied: "Abgelehnt", deniedText: "Die Anfrage von {website} wurde abgelehnt.",
  frozen: "Gemeldet", frozenText: "Die Anfrage wurde abgelehnt, und Ihr Konto bei {website} ist gesperrt. Jemand kennt Ihr Passwort: Ändern Sie es.",
  over: "Anfrage geschlossen", overText: "Diese Anfrage ist nicht mehr offen.", decided: "Schon entschieden", decidedText: "Eine andere Antwort war schneller: {login}.",
  success: "bestätigt", failure: "abgelehnt", hidden: "Eine Anfrage kann hier weder angezeigt noch beantwortet werden: {why}.",
  noCodes: "Noch keine Codes. Öffnen Sie auf der Website „Authenticator-App“ und scannen Sie dort den Code.", secondsLeft: "noch {seconds} s",
  removeCode: "Code für {issuer} entfernen", removeCodeText: "Danach können Sie sich nicht mehr mit diesem Code anmelden.", remove: "Entfernen", codeFor: "Code für {issuer}, {account}",
  noMessages: "Noch keine Nachrichten. SMS und E-Mails vom Relay kommen hier an.", sms: "SMS", mail: "E-Mail", from: "von {from}", to: "an {to}",
  language: "Sprache", rename: "Name bei {website}", renamed: "Gespeichert.", unbind: "Dieses Telefon entfernen", unbindTitle: "Dieses Telefon entfernen?",
  unbindText: "{website} fragt dieses Telefon dann nicht mehr, und sein Schlüssel wird gelöscht.", removeAccount: "Von diesem Telefon löschen",
  about: "Dieses Telefon gehört zur Twoefay-Demo. Ihr Browser erzeugt seine Schlüssel, und niemand kann sie lesen.",
  TWOEFAY_TITLE: "Anmeldung", TWOEFAY_LOGIN: "Sind Sie das?", TWOEFAY_LOGIN_SERVICE: "Sind Sie das, bei {0}?", TWOEFAY_LOGIN_PLACE: "Sind Sie das, aus {0}?",
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

/** The text of that name, with `{value}` replaced by its value. */
export const t = (name, values = {}) =>
  (tables[chosen][name] ?? name).replace(/\{(\w+)\}/g, (whole, value) => (value in values ? String(values[value]) : whole));

export const isKnown = (name) => Object.hasOwn(english, name);

export const timeOf = (moment) =>
  new Intl.DateTimeFormat(chosen, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(moment));
