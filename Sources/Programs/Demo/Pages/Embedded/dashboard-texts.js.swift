// Written by dev/embed-pages from Assets/dashboard-texts.js. Do not edit.
extension PageFile {
    static let dashboardTextsJS = PageFile(
        "dashboard-texts.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The texts of the dashboard, in English and German.

            const english = {
              skip: "To what is said", languages: "Language", lead: "A website asks your phone whether it is you. All of it runs on this machine.",
              guideTitle: "First steps", signUp: "Sign up", signUpHint: "On the website, with any name and password.",
              bind: "Bind the phone", bindHint: "On the phone, press “Scan what the website shows”.",
              logIn: "Log out, and log in", logInHint: "The phone rings, and wants the website's number.", done: "done",
              switchesTitle: "Break something, and log in again",
              website: "Website", relay: "Relay", phone: "Phone", phones: "Phones", carriers: "Push, SMS", alone: "In a tab of its own",
              websiteFrame: "The sample website", phoneNumber: "Phone {n}", activity: "What is said",
              routine: "Show polling", clear: "Clear", cleared: "Nothing has been said since.", nothing: "Nothing has been said yet. Sign up on the website.",
              relayUp: "relay up", relayDown: "relay down", relayStarting: "relay starting", relayGone: "ended",
              gone: "The demo has ended, or cannot be reached. Start it again in the terminal, and open the address that it prints then.",
              push: "Push service down", phoneOffline: "Phones offline", sms: "Slow text messages",
              relaySwitch: "Relay killed", operator: "Operator: unlock accounts", signed: "What is signed: {name}", shown: "What is shown: {name}",
              systems: { "website": "Website", "relay": "Relay", "phone": "Phone", "push service": "Push service", "mail server": "Mail server", "SMS gateway": "SMS gateway" },
              events: {
                relay_started: "The relay has been started again.", relay_killed: "The relay was killed.",
                relay_died: "The relay ended by itself.", relay_failed: "The relay could not be started.",
                push_down: "The push service is down: it answers 503.", push_up: "The push service works again.",
                phone_offline: "The phones are offline.", phone_online: "The phones are online again.",
                sms_slow: "Text messages take 20 seconds now.", sms_fast: "Text messages arrive at once again.",
                sms_delayed: "The gateway keeps this message for 20 seconds.",
                operator_unlocked: "The operator has unlocked:", operator_failed: "The operator could not unlock anybody.",
              },
            };

            const german = {
              skip: "Zu dem, was gesagt wird", languages: "Sprache", lead: "Eine Website fragt Ihr Telefon, ob Sie es sind. Alles läuft auf diesem Rechner.",
              guideTitle: "Erste Schritte", signUp: "Registrieren", signUpHint: "Auf der Website, Name und Passwort nach Belieben.",
              bind: "Telefon binden", bindHint: "Am Telefon: „Scannen, was die Website zeigt“.",
              logIn: "Ab- und wieder anmelden", logInHint: "Das Telefon klingelt und will die Zahl der Website.", done: "erledigt",
              switchesTitle: "Etwas kaputt machen und wieder anmelden",
              website: "Website", relay: "Relay", phone: "Telefon", phones: "Telefone", carriers: "Push, SMS", alone: "In eigenem Tab",
              websiteFrame: "Die Beispiel-Website", phoneNumber: "Telefon {n}", activity: "Was gesagt wird",
              routine: "Nachfragen zeigen", clear: "Leeren", cleared: "Seither hat niemand etwas gesagt.", nothing: "Noch hat niemand etwas gesagt. Registrieren Sie sich auf der Website.",
              relayUp: "Relay läuft", relayDown: "Relay steht", relayStarting: "Relay startet", relayGone: "zu Ende",
              gone: "Die Vorführung ist zu Ende oder nicht zu erreichen. Starten Sie sie im Terminal von neuem, und öffnen Sie die Adresse, die dort steht.",
              push: "Push-Dienst aus", phoneOffline: "Telefone ohne Netz", sms: "Langsame SMS",
              relaySwitch: "Relay getötet", operator: "Betreiber: Konten entsperren", signed: "Was signiert ist: {name}", shown: "Was gezeigt wird: {name}",
              systems: { "website": "Website", "relay": "Relay", "phone": "Telefon", "push service": "Push-Dienst", "mail server": "Mailserver", "SMS gateway": "SMS-Gateway" },
              events: {
                relay_started: "Das Relay ist wieder gestartet.", relay_killed: "Das Relay wurde getötet.",
                relay_died: "Das Relay hat sich von selbst beendet.", relay_failed: "Das Relay ließ sich nicht starten.",
                push_down: "Der Push-Dienst ist aus: Er antwortet 503.", push_up: "Der Push-Dienst geht wieder.",
                phone_offline: "Die Telefone haben kein Netz.", phone_online: "Die Telefone haben wieder Netz.",
                sms_slow: "SMS brauchen jetzt 20 Sekunden.", sms_fast: "SMS kommen wieder sofort an.",
                sms_delayed: "Das Gateway behält diese SMS 20 Sekunden.",
                operator_unlocked: "Der Betreiber hat entsperrt:", operator_failed: "Der Betreiber konnte niemanden entsperren.",
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
