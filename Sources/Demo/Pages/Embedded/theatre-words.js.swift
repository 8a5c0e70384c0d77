// Written by deploy/embed-pages from Assets/theatre-words.js. Do not edit.
extension PageFile {
    static let theatreWordsJS = PageFile(
        "theatre-words.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // What the theatre says, in English and German.

            const english = {
              skip: "To what is said", languages: "Language", switchesTitle: "Break something, and see what happens",
              website: "Website", relay: "Relay", phone: "Phone", phones: "Phones", carriers: "Push, mail, SMS",
              websiteFrame: "The sample website", phoneNumber: "Phone {n}", talk: "What they say to each other",
              routine: "Show polling", clear: "Clear", nothing: "Nothing has been said yet. Sign up on the website.",
              relayUp: "relay up", relayDown: "relay down", relayStarting: "relay starting", gone: "the demo has ended",
              push: "Push service down", phoneOffline: "Phones offline", sms: "Slow text messages",
              relaySwitch: "Relay killed", operator: "Operator: unlock accounts", signed: "What is signed: {name}", shown: "What is shown: {name}",
              parties: { "website": "Website", "relay": "Relay", "phone": "Phone", "push service": "Push service", "mail server": "Mail server", "SMS gateway": "SMS gateway" },
              notes: {
                relay_started: "The relay has been started again.", relay_killed: "The relay was killed.",
                relay_died: "The relay ended by itself.", relay_failed: "The relay could not be started.",
                push_down: "The push service is down: it answers 503.", push_up: "The push service works again.",
                phone_offline: "The phones are offline.", phone_online: "The phones are online again.",
                sms_slow: "Text messages take 20 seconds now.", sms_fast: "Text messages arrive at once again.",
                sms_delayed: "The gateway keeps this message for 20 seconds.",
                operator_unlocked: "The operator has unlocked:", operator_failed: "The operator could not unlock anybody.",
              },
              about: {
                "website POST /register": "A new user: the relay makes a code that binds one phone.",
                "website POST /login": "The password was right. Ask this user whether it is them.",
                "website POST /auth": "How did it end? The relay holds this until it knows.",
                "website POST /backup": "The code that the person typed.",
                "website POST /activate": "A new activation, for one more phone.",
                "website POST /factor": "Another way to answer: add it.",
                "website GET /user": "What does this user have?",
                "website POST /challenge": "Begin another factor now.",
                "phone POST /verify": "A new key: the phone proves that it has it.",
                "phone POST /pending": "What is there to answer? Never what the push said.",
                "phone POST /success": "Yes, signed with the phone's key over all that was shown.",
                "phone POST /failure": "No, signed with the phone's key.",
                "phone POST /device": "The phone tells of itself.",
                "phone DELETE /device": "The phone unbinds itself.",
                "relay push": "Wake the phone: a bell, nothing to believe.",
                "push push": "The phone rings.",
                "relay SMTP": "A mail with a code, or with news of the account.",
                "relay POST /sms": "A text message with a code.",
                "mail mail": "The mail arrives.", "sms sms": "The text message arrives.",
                "answer wait": "Not yet.", "answer success": "Yes. The website checks the signature itself.",
                "answer failure": "No.", "answer verified": "It is begun.", "answer refused": "Refused.",
                "answer pending": "This is asked.", "answer activation": "A code for one phone, which counts for ten minutes.",
                "answer verified phone": "The phone is bound, and has a certificate.", "answer wait phone": "Another phone of this user has to approve first.",
                "answer success phone": "Heard, and passed on.", "answer failure phone": "Heard, and passed on.",
              },
            };

            const german = {
              skip: "Zu dem, was gesagt wird", languages: "Sprache", switchesTitle: "Mach etwas kaputt und sieh, was geschieht",
              website: "Website", relay: "Relay", phone: "Telefon", phones: "Telefone", carriers: "Push, Mail, SMS",
              websiteFrame: "Die Beispiel-Website", phoneNumber: "Telefon {n}", talk: "Was sie einander sagen",
              routine: "Nachfragen zeigen", clear: "Leeren", nothing: "Noch hat niemand etwas gesagt. Lege auf der Website ein Konto an.",
              relayUp: "Relay läuft", relayDown: "Relay steht", relayStarting: "Relay startet", gone: "die Vorführung ist zu Ende",
              push: "Push-Dienst aus", phoneOffline: "Telefone ohne Netz", sms: "Langsame SMS",
              relaySwitch: "Relay getötet", operator: "Betreiber: Konten entsperren", signed: "Was signiert ist: {name}", shown: "Was gezeigt wird: {name}",
              parties: { "website": "Website", "relay": "Relay", "phone": "Telefon", "push service": "Push-Dienst", "mail server": "Mailserver", "SMS gateway": "SMS-Gateway" },
              notes: {
                relay_started: "Das Relay ist wieder gestartet.", relay_killed: "Das Relay wurde getötet.",
                relay_died: "Das Relay hat sich von selbst beendet.", relay_failed: "Das Relay ließ sich nicht starten.",
                push_down: "Der Push-Dienst ist aus: Er antwortet 503.", push_up: "Der Push-Dienst geht wieder.",
                phone_offline: "Die Telefone haben kein Netz.", phone_online: "Die Telefone haben wieder Netz.",
                sms_slow: "SMS brauchen jetzt 20 Sekunden.", sms_fast: "SMS kommen wieder sofort an.",
                sms_delayed: "Das Gateway behält diese SMS 20 Sekunden.",
                operator_unlocked: "Der Betreiber hat entsperrt:", operator_failed: "Der Betreiber konnte niemanden entsperren.",
              },
              about: {
                "website POST /register": "Ein neuer Benutzer: Das Relay macht einen Code, der ein Telefon bindet.",
                "website POST /login": "Das Passwort stimmte. Frage, ob es dieser Mensch ist.",
                "website POST /auth": "Wie ging es aus? Das Relay hält die Frage, bis es das weiß.",
                "website POST /backup": "Der Code, den der Mensch eingegeben hat.",
                "website POST /activate": "Noch eine Aktivierung, für ein weiteres Telefon.",
                "website POST /factor": "Ein weiterer Weg zu antworten.",
                "website GET /user": "Was hat dieser Benutzer?",
                "website POST /challenge": "Beginne jetzt einen anderen Faktor.",
                "phone POST /verify": "Ein neuer Schlüssel: Das Telefon beweist, dass es ihn hat.",
                "phone POST /pending": "Was ist zu beantworten? Nie das, was der Push sagte.",
                "phone POST /success": "Ja, signiert mit dem Schlüssel des Telefons über alles, was es zeigte.",
                "phone POST /failure": "Nein, signiert mit dem Schlüssel des Telefons.",
                "phone POST /device": "Das Telefon erzählt von sich.",
                "phone DELETE /device": "Das Telefon löst sich.",
                "relay push": "Wecke das Telefon: eine Klingel, der niemand glauben muss.",
                "push push": "Das Telefon klingelt.",
                "relay SMTP": "Eine Mail mit einem Code oder mit Nachricht vom Konto.",
                "relay POST /sms": "Eine SMS mit einem Code.",
                "mail mail": "Die Mail kommt an.", "sms sms": "Die SMS kommt an.",
                "answer wait": "Noch nicht.", "answer success": "Ja. Die Website prüft die Signatur selbst.",
                "answer failure": "Nein.", "answer verified": "Es ist begonnen.", "answer refused": "Abgelehnt.",
                "answer pending": "Das wird gefragt.", "answer activation": "Ein Code für ein Telefon, der zehn Minuten gilt.",
                "answer verified phone": "Das Telefon ist gebunden und hat ein Zertifikat.", "answer wait phone": "Erst muss ein anderes Telefon dieses Benutzers zustimmen.",
                "answer success phone": "Gehört und weitergegeben.", "answer failure phone": "Gehört und weitergegeben.",
              },
            };

            let language = localStorage.getItem("language") ?? (navigator.language.startsWith("de") ? "de" : "en");

            export const current = () => language;

            export function choose(chosen) {
              language = chosen;
              localStorage.setItem("language", chosen);
            }

            export const words = () => (language === "de" ? german : english);

            export function word(name, values = {}) {
              return Object.entries(values).reduce((text, [key, value]) => text.replace(`{${key}}`, value), words()[name] ?? name);
            }

            """#)
}
