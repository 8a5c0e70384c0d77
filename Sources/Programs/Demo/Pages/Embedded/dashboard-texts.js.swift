// Written by dev/embed-pages from Assets/dashboard-texts.js. Do not edit.
extension PageFile {
    static let dashboardTextsJS = PageFile(
        "dashboard-texts.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The texts of the dashboard, in English and German.

            const english = {
              skip: "Skip to the messages", languages: "Language", lead: "A website asks your phone whether it is you. Everything runs on this machine.",
              guideTitle: "First steps", signUp: "Sign up", signUpHint: "On the website, with any name and password.",
              bind: "Add the phone", bindHint: "On the phone, press “Scan the code on the website”.",
              logIn: "Log out and log in again", logInHint: "The phone shows a request and needs the number on the website.", done: "done",
              switchesTitle: "Break something and log in again",
              website: "Website", relay: "Relay", phone: "Phone", phones: "Phones", carriers: "Push, SMS", alone: "Open in a new tab",
              websiteFrame: "The sample website", phoneNumber: "Phone {n}", activity: "Messages",
              routine: "Show polling", clear: "Clear", cleared: "No new messages.", nothing: "No messages yet. Sign up on the website.",
              relayUp: "relay running", relayDown: "relay down", relayStarting: "relay starting", relayGone: "demo ended",
              gone: "The demo has ended or cannot be reached. Start it again in the terminal, and open the new address.",
              push: "Push service down", phoneOffline: "Phones offline", sms: "Slow text messages",
              relaySwitch: "Relay killed", operator: "Operator: unlock accounts", signed: "Signed: {name}", shown: "Shown on the phone: {name}",
              systems: { "website": "Website", "relay": "Relay", "phone": "Phone", "push service": "Push service", "mail server": "Mail server", "SMS gateway": "SMS gateway" },
              events: {
                relay_started: "The relay is running again.", relay_killed: "The relay was killed.",
                relay_died: "The relay ended unexpectedly.", relay_failed: "The relay could not be started.",
                push_down: "The push service is down: it answers 503.", push_up: "The push service works again.",
                phone_offline: "The phones are offline.", phone_online: "The phones are online again.",
                sms_slow: "Text messages now take 20 seconds.", sms_fast: "Text messages arrive at once again.",
                sms_delayed: "The gateway holds this message for 20 seconds.",
                operator_unlocked: "The operator has unlocked:", operator_failed: "The operator could not unlock the accounts.",
              },
            };

            const german = {
              skip: "Zu den Nachrichten", languages: "Sprache", lead: "Eine Website fragt Ihr Telefon, ob Sie es sind. Alles läuft auf diesem Rechner.",
              guideTitle: "Erste Schritte", signUp: "Registrieren", signUpHint: "Auf der Website, mit beliebigem Namen und Passwort.",
              bind: "Telefon hinzufügen", bindHint: "Auf dem Telefon: „Code auf der Website scannen“.",
              logIn: "Ab- und wieder anmelden", logInHint: "Das Telefon zeigt eine Anfrage und braucht die Zahl auf der Website.", done: "erledigt",
              switchesTitle: "Etwas kaputt machen und wieder anmelden",
              website: "Website", relay: "Relay", phone: "Telefon", phones: "Telefone", carriers: "Push, SMS", alone: "In neuem Tab öffnen",
              websiteFrame: "Die Beispiel-Website", phoneNumber: "Telefon {n}", activity: "Nachrichten",
              routine: "Polling anzeigen", clear: "Leeren", cleared: "Keine neuen Nachrichten.", nothing: "Noch keine Nachrichten. Registrieren Sie sich auf der Website.",
              relayUp: "Relay läuft", relayDown: "Relay ausgefallen", relayStarting: "Relay startet", relayGone: "Demo beendet",
              gone: "Die Demo wurde beendet oder ist nicht erreichbar. Starten Sie sie im Terminal neu und öffnen Sie die neue Adresse.",
              push: "Push-Dienst ausgefallen", phoneOffline: "Telefone offline", sms: "Langsame SMS",
              relaySwitch: "Relay abgestürzt", operator: "Betreiber: Konten entsperren", signed: "Signiert: {name}", shown: "Auf dem Telefon angezeigt: {name}",
              systems: { "website": "Website", "relay": "Relay", "phone": "Telefon", "push service": "Push-Dienst", "mail server": "Mailserver", "SMS gateway": "SMS-Gateway" },
              events: {
                relay_started: "Das Relay läuft wieder.", relay_killed: "Das Relay ist abgestürzt (kill -9).",
                relay_died: "Das Relay hat sich unerwartet beendet.", relay_failed: "Das Relay konnte nicht gestartet werden.",
                push_down: "Der Push-Dienst ist ausgefallen: Er antwortet mit 503.", push_up: "Der Push-Dienst funktioniert wieder.",
                phone_offline: "Die Telefone sind offline.", phone_online: "Die Telefone sind wieder online.",
                sms_slow: "SMS brauchen jetzt 20 Sekunden.", sms_fast: "SMS kommen wieder sofort an.",
                sms_delayed: "Das Gateway hält diese SMS 20 Sekunden zurück.",
                operator_unlocked: "Der Betreiber hat entsperrt:", operator_failed: "Der Betreiber konnte die Konten nicht entsperren.",
              },
            };

            let chosen = localStorage.getItem("language") ?? (navigator.language.startsWith("de") ? "de" : "en");

            export const language = () => chosen;

            export function setLanguage(tag) {
              chosen = tag;
              localStorage.setItem("language", tag);
            }

            export const texts = () => (chosen === "de" ? german : english);

            /** The text of that name, with `{key}` replaced by its value. */
            export function text(name, values = {}) {
              return Object.entries(values).reduce((filled, [key, value]) => filled.replace(`{${key}}`, value), texts()[name] ?? name);
            }

            """#)
}
