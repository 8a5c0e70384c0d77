// Written by dev/embed-pages from Assets/dashboard-explanations.js. Do not edit.
extension PageFile {
    static let dashboardExplanationsJS = PageFile(
        "dashboard-explanations.js", type: "text/javascript; charset=utf-8",
        text: #"""
            // The explanation of each message in one sentence. A request is explained by its sender, method and path, and a response by its
            // body.

            import { language } from "./dashboard-texts.js";

            const english = {
              "website POST /register": "A new user: create a code that adds one phone.",
              "website POST /login": "The password was right. Ask whether this is the user.",
              "website POST /auth": "What is the result? The relay holds the request until it knows.",
              "website POST /backup": "The code that the user entered.",
              "website POST /challenge/factor": "Send a code instead.",
              "website DELETE /challenge": "Cancel the login.",
              "website GET /user": "Which phones and codes does this user have?",
              "website POST /user/activation": "Create a code that adds another phone.",
              "website POST /user/totp": "Create the secret for an authenticator app.",
              "website POST /user/totp/confirm": "The first code of the app: it has the secret.",
              "website DELETE /user/totp": "Remove the app.",
              "website POST /user/recovery-codes": "Create recovery codes.",
              "website POST /user/recovery-codes/confirm": "One of them was typed back: they count now.",
              "website POST /user/unlock": "Unlock the account with a recovery code.",
              "website PATCH /user/devices": "Rename the phone.",
              "website DELETE /user/devices": "Remove the phone.",
              "phone POST /verify": "A new key: the phone proves that it holds it.",
              "phone POST /pending": "Which requests are open? The phone trusts only the relay, never the push.",
              "phone POST /success": "Approved: signed by the phone, over everything that it showed.",
              "phone POST /failure": "Rejected: signed by the phone.",
              "phone POST /device": "The phone updates its own data.",
              "phone DELETE /device": "The phone removes itself.",
              "relay push": "Wake the phone. The phone does not trust the content.", "push rings": "The push arrives.",
              "push took": "The push is on its way.", "push failed": "The push is refused.",
              "relay mail": "An email with a code, or about a change of the account.", "mail arrives": "The email arrives.",
              "relay sms": "A text message with a code.", "sms arrives": "The text message arrives.",
              "answer wait": "No result yet.", "answer success": "Approved. The website verifies the signature itself.", "answer failure": "Not approved.",
              "answer verified": "The login has started.", "answer pending": "This request is open.", "answer activation": "A code for one phone, valid for ten minutes.",
              "answer codes": "Ten codes, shown once.", "answer secret": "The secret, as a QR code.", "answer confirmed": "The app is active from now on.",
              "answer send": "The code is being sent.", "answer verified phone": "The phone is added and has a certificate.",
              "answer wait phone": "Another phone of this user has to approve first.",
              "answer success phone": "Received and passed on.", "answer failure phone": "Received and passed on.", "answer done": "Done.",
              "refused approval_required": "The phone has to approve this first.", "refused limited": "Too many requests: wait a moment.",
              "refused frozen": "The account is frozen after a fraud report.", "refused": "Refused.",
            };

            const german = {
              "website POST /register": "Ein neuer Benutzer: Erstelle einen Code, der ein Telefon hinzufügt.",
              "website POST /login": "Das Passwort stimmt. Frag nach, ob es wirklich dieser Benutzer ist.",
              "website POST /auth": "Wie lautet das Ergebnis? Das Relay hält die Anfrage, bis es das weiß.",
              "website POST /backup": "Der Code, den der Benutzer eingegeben hat.",
              "website POST /challenge/factor": "Sende stattdessen einen Code.",
              "website DELETE /challenge": "Brich die Anmeldung ab.",
              "website GET /user": "Welche Telefone und Codes hat dieser Benutzer?",
              "website POST /user/activation": "Erstelle einen Code, der ein weiteres Telefon hinzufügt.",
              "website POST /user/totp": "Erstelle das Geheimnis für eine Authenticator-App.",
              "website POST /user/totp/confirm": "Der erste Code der App: Sie hat das Geheimnis.",
              "website DELETE /user/totp": "Entferne die App.",
              "website POST /user/recovery-codes": "Erstelle Notfallcodes.",
              "website POST /user/recovery-codes/confirm": "Einer wurde zurückgetippt: Sie gelten jetzt.",
              "website POST /user/unlock": "Entsperre das Konto mit einem Notfallcode.",
              "website PATCH /user/devices": "Benenne das Telefon um.",
              "website DELETE /user/devices": "Entferne das Telefon.",
              "phone POST /verify": "Ein neuer Schlüssel: Das Telefon beweist, dass es ihn besitzt.",
              "phone POST /pending": "Welche Anfragen sind offen? Das Telefon vertraut nur dem Relay, nie dem Push.",
              "phone POST /success": "Bestätigt: vom Telefon signiert, mit allem, was es angezeigt hat.",
              "phone POST /failure": "Abgelehnt: vom Telefon signiert.",
              "phone POST /device": "Das Telefon aktualisiert seine Daten.",
              "phone DELETE /device": "Das Telefon entfernt sich selbst.",
              "relay push": "Weck das Telefon. Dem Inhalt vertraut es nicht.", "push rings": "Der Push kommt an.",
              "push took": "Der Push ist unterwegs.", "push failed": "Der Push wird abgelehnt.",
              "relay mail": "Eine E-Mail mit einem Code oder über eine Änderung am Konto.", "mail arrives": "Die E-Mail kommt an.",
              "relay sms": "Eine SMS mit einem Code.", "sms arrives": "Die SMS kommt an.",
              "answer wait": "Noch kein Ergebnis.", "answer success": "Bestätigt. Die Website prüft die Signatur selbst.", "answer failure": "Nicht bestätigt.",
              "answer verified": "Die Anmeldung hat begonnen.", "answer pending": "Diese Anfrage ist offen.", "answer activation": "Ein Code für ein Telefon, zehn Minuten gültig.",
              "answer codes": "Zehn Codes, nur einmal angezeigt.", "answer secret": "Das Geheimnis, als QR-Code.", "answer confirmed": "Die App ist ab jetzt aktiv.",
              "answer send": "Der Code wird gesendet.", "answer verified phone": "Das Telefon ist hinzugefügt und hat ein Zertifikat.",
              "answer wait phone": "Zuerst muss ein anderes Telefon dieses Benutzers bestätigen.",
              "answer success phone": "Empfangen und weitergegeben.", "answer failure phone": "Empfangen und weitergegeben.", "answer done": "Erledigt.",
              "refused approval_required": "Zuerst muss das Telefon bestätigen.", "refused limited": "Zu viele Anfragen: kurz warten.",
              "refused frozen": "Das Konto ist nach einer Betrugsmeldung gesperrt.", "refused": "Abgelehnt.",
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
