// Written by dev/embed-pages from Assets/dashboard-explanations.js. Do not edit.
extension PageFile {
    static let dashboardExplanationsJS = PageFile(
        "dashboard-explanations.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The explanation of each message in one sentence. A request is explained by its sender, method and path, and a response by its
            // body.

            import { language } from "./dashboard-texts.js";

            const english = {
              "website POST /register": "A new user: make a code that binds one phone.",
              "website POST /login": "The password was right. Ask this user whether it is them.",
              "website POST /auth": "How did it end? The relay holds this until it knows.",
              "website POST /backup": "The code that the person typed.",
              "website POST /challenge/factor": "Send a code instead.",
              "website DELETE /challenge": "Nobody wants it any more.",
              "website GET /user": "What does this user have?",
              "website POST /user/activation": "A code that binds one more phone.",
              "website POST /user/totp": "An app for codes: make its secret.",
              "website POST /user/totp/confirm": "The app's first code: it has read its secret.",
              "website DELETE /user/totp": "The app counts no more.",
              "website POST /user/recovery-codes": "Make recovery codes.",
              "website POST /user/unlock": "Lift the freeze: here is a recovery code.",
              "website PATCH /user/devices": "The phone has another name.",
              "website DELETE /user/devices": "This phone counts no more.",
              "phone POST /verify": "A new key: the phone proves that it has it.",
              "phone POST /pending": "What is there to answer? Never what the push said.",
              "phone POST /success": "Yes, signed with the phone's key over all that was shown.",
              "phone POST /failure": "No, signed with the phone's key.",
              "phone POST /device": "The phone tells of itself.",
              "phone DELETE /device": "The phone unbinds itself.",
              "relay push": "Wake the phone: a bell, nothing to believe.", "push rings": "The phone rings.",
              "push took": "It is on its way.", "push failed": "No push gets through.",
              "relay mail": "A mail with a code, or with news of the account.", "mail arrives": "The mail arrives.",
              "relay sms": "A text message with a code.", "sms arrives": "The text message arrives.",
              "answer wait": "Not yet.", "answer success": "Yes. The website checks the signature itself.", "answer failure": "No.",
              "answer verified": "It is begun.", "answer pending": "This is asked.", "answer activation": "A code for one phone, which counts for ten minutes.",
              "answer codes": "Ten codes, shown once.", "answer secret": "The secret, for a QR code.", "answer confirmed": "The app counts from now on.",
              "answer send": "It is being sent.", "answer verified phone": "The phone is bound, and has a certificate.",
              "answer wait phone": "Another phone of this user has to approve first.",
              "answer success phone": "Heard, and passed on.", "answer failure phone": "Heard, and passed on.", "answer done": "Done.",
              "refused approval_required": "Only with the phone's yes: it is asked.", "refused limited": "Too often: wait a little.",
              "refused frozen": "Nobody gets in under this name: it was reported.", "refused": "Refused.",
            };

            const german = {
              "website POST /register": "Ein neuer Benutzer: Mach einen Code, der ein Telefon bindet.",
              "website POST /login": "Das Passwort stimmte. Frag, ob es dieser Mensch ist.",
              "website POST /auth": "Wie ging es aus? Das Relay hält die Frage, bis es das weiß.",
              "website POST /backup": "Der Code, den der Mensch eingegeben hat.",
              "website POST /challenge/factor": "Schick stattdessen einen Code.",
              "website DELETE /challenge": "Niemand will es mehr.",
              "website GET /user": "Was hat dieser Benutzer?",
              "website POST /user/activation": "Ein Code, der noch ein Telefon bindet.",
              "website POST /user/totp": "Eine App für Codes: Mach ihr Geheimnis.",
              "website POST /user/totp/confirm": "Der erste Code der App: Sie hat ihr Geheimnis gelesen.",
              "website DELETE /user/totp": "Die App zählt nicht mehr.",
              "website POST /user/recovery-codes": "Mach Notfallcodes.",
              "website POST /user/unlock": "Heb die Sperre auf: Hier ist ein Notfallcode.",
              "website PATCH /user/devices": "Das Telefon heißt anders.",
              "website DELETE /user/devices": "Dieses Telefon zählt nicht mehr.",
              "phone POST /verify": "Ein neuer Schlüssel: Das Telefon beweist, dass es ihn hat.",
              "phone POST /pending": "Was ist zu beantworten? Nie das, was der Push sagte.",
              "phone POST /success": "Ja, signiert mit dem Schlüssel des Telefons über alles, was es zeigte.",
              "phone POST /failure": "Nein, signiert mit dem Schlüssel des Telefons.",
              "phone POST /device": "Das Telefon erzählt von sich.",
              "phone DELETE /device": "Das Telefon löst sich.",
              "relay push": "Weck das Telefon: eine Klingel, der niemand glauben muss.", "push rings": "Das Telefon klingelt.",
              "push took": "Es ist unterwegs.", "push failed": "Kein Push kommt durch.",
              "relay mail": "Eine Mail mit einem Code oder mit Nachricht vom Konto.", "mail arrives": "Die Mail kommt an.",
              "relay sms": "Eine SMS mit einem Code.", "sms arrives": "Die SMS kommt an.",
              "answer wait": "Noch nicht.", "answer success": "Ja. Die Website prüft die Signatur selbst.", "answer failure": "Nein.",
              "answer verified": "Es ist begonnen.", "answer pending": "Das wird gefragt.", "answer activation": "Ein Code für ein Telefon, der zehn Minuten gilt.",
              "answer codes": "Zehn Codes, einmal gezeigt.", "answer secret": "Das Geheimnis, für einen QR-Code.", "answer confirmed": "Die App zählt von jetzt an.",
              "answer send": "Es wird geschickt.", "answer verified phone": "Das Telefon ist gebunden und hat ein Zertifikat.",
              "answer wait phone": "Erst muss ein anderes Telefon dieses Benutzers zustimmen.",
              "answer success phone": "Gehört und weitergegeben.", "answer failure phone": "Gehört und weitergegeben.", "answer done": "Erledigt.",
              "refused approval_required": "Nur mit dem Ja des Telefons: Es wird gefragt.", "refused limited": "Zu oft: etwas warten.",
              "refused frozen": "Unter diesem Namen kommt niemand hinein: Er wurde gemeldet.", "refused": "Abgelehnt.",
            };

            /** Whether a message is a response: its head is a status. */
            export const isAnswer = ({ head }) => /^\d{3}$/.test(head);

            /** Whether a response is a failure. `approval_required` is none: it names the step that comes first. */
            export const isBad = ({ head, body }) => /^[45]/.test(head) && body.code !== "approval_required";

            // The path without the ids of users, challenges and phones.
            const route = (path) => path.replace(/^\/(user|challenge)\/[^/]+/, "/$1").replace(/^\/user\/devices\/.*/, "/user/devices");

            function explainResponse({ from, to, head, body }, texts) {
              if (from === "push service") return texts[isBad({ head, body }) ? "push failed" : "push took"];
              if (Number(head) >= 400) return texts[`refused ${body.code}`] ?? body.detail ?? body.title ?? texts.refused;
              if (body.pending?.length) return texts["answer pending"];
              for (const member of ["activation", "codes", "secret", "confirmed"]) if (body[member]) return texts[`answer ${member}`];
              if (head === "202") return texts["answer send"];
              return texts[`answer ${body.login} ${to}`] ?? texts[`answer ${body.login}`] ?? texts["answer done"];
            }

            /** The explanation of a message; undefined if there is none. */
            export function explain(entry) {
              const texts = language() === "de" ? german : english;
              const { from, to, head } = entry;
              if (isAnswer(entry)) return explainResponse(entry, texts);
              if (from === "relay") return texts[{ "push service": "relay push", "mail server": "relay mail", "SMS gateway": "relay sms" }[to]];
              const arrival = { "push service": "push rings", "mail server": "mail arrives", "SMS gateway": "sms arrives" }[from];
              if (arrival) return texts[arrival];
              const [method, path] = head.split(" ");
              return texts[`${from} ${method} ${route(path ?? "")}`];
            }

            """#)
}
