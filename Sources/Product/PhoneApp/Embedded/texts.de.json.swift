// Written by dev/embed-pages from Assets/texts.de.json. Do not edit.
extension AppFile {
    static let textsDeJSON = AppFile(
        "texts.de.json", type: "application/json",
        text: #"""
            {
              "tag": "de",
              "skip": "Zum Inhalt", "tabs": "Bereiche dieser App", "counted": "{name} ({count})",
              "home": "Anfragen", "codes": "Codes", "notices": "Mitteilungen", "settings": "Einstellungen",
              "done": "Fertig", "back": "Zurück", "cancel": "Abbrechen", "goOn": "Weiter", "open": "Öffnen", "save": "Speichern", "saved": "Gespeichert.", "remove": "Entfernen", "look": "Anzeigen", "notNow": "Jetzt nicht", "looking": "Einen Moment …",
              "failed": "Das hat nicht geklappt: {why}.", "slow": "Zu viele Versuche. Versuchen Sie es in {seconds} Sekunden noch einmal.",

              "needsSecure": "Diese Seite wurde nicht über eine sichere Verbindung geladen; der Browser gibt ihr deshalb keine Schlüssel.",
              "needsCrypto": "Dieser Browser kann die Schlüssel nicht erzeugen, die diese App braucht. Aktualisieren Sie ihn oder verwenden Sie einen anderen.",
              "needsStorage": "Dieser Browser lässt die App ihre Schlüssel nicht speichern. Verlassen Sie den privaten Modus oder verwenden Sie einen anderen Browser.",
              "needsWorker": "Dieser Browser ist zu alt für diese App, oder er ist im privaten Modus. Aktualisieren Sie ihn oder verwenden Sie einen anderen.",
              "inFrame": "Eine andere Website zeigt diese App in ihrer eigenen Seite. Öffnen Sie die App für sich allein.",
              "cannotStart": "Die App konnte nicht starten: {why}. Laden Sie die Seite neu.",
              "offline": "Dieses Gerät ist offline. Neue Anfragen kommen an, sobald es wieder online ist.",
              "relayLost": "Das Relay ist nicht erreichbar. Neuer Versuch …",
              "updateReady": "Eine neue Version dieser App ist bereit.",

              "noAccounts": "Diese App bestätigt Ihre Anmeldungen. Um das erste Konto hinzuzufügen, öffnen Sie auf der Website „Meine Telefone“ und scannen Sie den Code, den sie zeigt.",
              "hadAccounts": "Hatten Sie hier schon Konten?",
              "cleared": "Der Browser hat die Schlüssel dieser App gelöscht; Ihre Konten sind deshalb nicht mehr auf diesem Gerät. Melden Sie sich mit einem anderen Faktor oder einem Wiederherstellungscode an, entfernen Sie das verlorene Telefon auf der Website (oder mit seinem Sperrcode) und fügen Sie dieses Telefon neu hinzu.",
              "accounts": "Konten", "addAccount": "Konto hinzufügen", "check": "Nach Anfragen suchen", "noRequests": "Es gibt keine Anfragen.",
              "requests": "Offene Anfragen", "arrived": "Eine neue Anfrage von {website}.", "hiddenRequest": "{website} hat eine Anfrage geschickt, die hier weder angezeigt noch beantwortet werden kann: {why}.",
              "stateBound": "aktiv", "stateAsked": "wartet auf Bestätigung", "stateRefused": "gesperrt", "stateUnbound": "entfernt",
              "recoveries": "Ein Faktor soll ersetzt werden", "recoveryText": "Jemand hat {website} gemeldet, {what} sei verloren. Wenn Sie das nicht waren, halten Sie es jetzt auf.", "recoveryReady": "Der Wechsel ist ab {time} möglich.",
              "recoveryStop": "Ich habe nichts verloren: aufhalten", "recoveryStopped": "Der Wechsel wurde aufgehalten.",
              "lost-totp": "Ihre Authenticator-App", "lost-hotp": "Ihr Token", "lost-push": "Ihr Telefon",

              "addText": "Scannen Sie den Code auf der Website oder fügen Sie seinen Link ein.", "scan": "Code scannen", "cameraView": "Bild der Kamera", "cameraStarts": "Die Kamera startet …", "cameraLooks": "Halten Sie den Code vor die Kamera.",
              "cameraDenied": "Der Browser lässt diese App die Kamera nicht verwenden. Erlauben Sie es in seinen Einstellungen für diese Seite oder fügen Sie den Link ein.", "cameraNone": "Die Kamera ist nicht verwendbar. Fügen Sie stattdessen den Link ein.",
              "link": "Link", "linkHint": "Er beginnt mit https:, twoefay: oder otpauth:.", "linkEmpty": "Fügen Sie zuerst den Link ein.",
              "linkRefused": "Dieser Link wurde nicht verwendet",
              "linkUnknown": "Das ist kein Link für diese App. Er muss mit https:, twoefay: oder otpauth: beginnen.",
              "linkMalformed": "Der Link ist beschädigt: {why}. Holen Sie sich auf der Website einen neuen.",
              "linkNativeOnly": "Die Website {website} nimmt nur native Apps, nicht diese App im Browser. Es wurde nichts gesendet. Installieren Sie die App, die die Website empfiehlt, und scannen Sie den Code damit.",
              "linkOtherRelay": "Dieser Link gehört zu {relay}. Diese App darf mit diesem Relay nicht sprechen.",
              "linkOtherApp": "Dieser Link gehört zur App auf {app}. Öffnen Sie ihn dort.",
              "linkKeyAtRelay": "Dieser Link enthält einen Schlüssel der Website, den das Relay {relay} nie sehen darf. Diese App kommt von diesem Relay, und es könnte ihn lesen. Es wurde nichts gesendet. Verwenden Sie eine native App oder die Web-App, die die Website empfiehlt, und melden Sie es der Website: Ihre Links für diese App dürfen den Schlüssel nicht enthalten.",

              "installTitle": "Zuerst die App installieren", "installFirst": "Auf diesem Gerät hat eine installierte App ihren eigenen Speicher. Installieren Sie sie zuerst und fügen Sie Ihr Konto in der App hinzu. Sonst bleiben die Schlüssel in diesem Tab.",
              "installHow": "So installieren Sie sie", "installStep1": "Drücken Sie in Safari auf „Teilen“.", "installStep2": "Wählen Sie „Zum Home-Bildschirm“.", "installStep3": "Öffnen Sie die App vom Home-Bildschirm.", "installStep4": "Scannen Sie dort den Code oder fügen Sie den Link ein.",
              "copyLink": "Link kopieren", "copied": "Kopiert. Fügen Sie ihn innerhalb von 10 Minuten in der installierten App ein.", "notCopied": "Der Browser hat das nicht erlaubt. Scannen Sie den Code stattdessen in der App.", "installHint": "Sie können diese App installieren: Wählen Sie im Menü des Browsers „Installieren“ oder „Zum Startbildschirm hinzufügen“.",

              "bindTitle": "Dieses Telefon hinzufügen?", "bindText": "{website} fragt Sie dann auf diesem Telefon, ob eine Anmeldung von Ihnen ist.", "website": "Website", "relay": "Relay",
              "phoneName": "Name dieses Telefons", "phoneNameHint": "So heißt es auf der Website. Höchstens 64 Zeichen.", "bindIt": "Telefon hinzufügen",
              "ownerCheck": "Vor jeder Bestätigung meinen Fingerabdruck, mein Gesicht oder die Bildschirmsperre verlangen", "noOwnerCheck": "Dieses Gerät bietet dieser App weder Fingerabdruck noch Gesicht oder Bildschirmsperre. Websites, die das verlangen, nehmen seine Bestätigungen nicht an.",
              "passkeyFailed": "Das Gerät hat Sie nicht erkannt. Versuchen Sie es noch einmal oder machen Sie ohne diese Prüfung weiter.",
              "binding": "Telefon wird hinzugefügt …", "isBound": "Telefon hinzugefügt", "notBound": "Telefon nicht hinzugefügt", "boundText": "{website} fragt Sie jetzt auf diesem Telefon, ob eine Anmeldung von Ihnen ist.",
              "revocation": "Code, um ein verlorenes Telefon zu entfernen", "revocationHint": "Schreiben Sie ihn auf und bewahren Sie ihn anderswo auf. Er wird nur einmal angezeigt.", "writtenDown": "Ich habe ihn aufgeschrieben",
              "waits": "Dieses Telefon bestätigen", "waitsText": "Sie haben schon ein Telefon. Öffnen Sie dort die Anfrage, vergleichen Sie den Schlüssel und geben Sie diese Zahl ein:", "key": "Schlüssel dieses Telefons",
              "stillTrying": "Das Relay antwortet nicht. Neuer Versuch …",
              "enrolRefused": "Dieser Code wurde schon verwendet, ist zu alt oder wurde abgelehnt. Holen Sie sich auf der Website einen neuen.",
              "enrolNotTaken": "{website} nimmt dieses Telefon nicht an. Vielleicht nimmt sie nur native Apps.",
              "enrolFull": "Sie haben schon so viele Telefone, wie die Website erlaubt. Entfernen Sie zuerst eines; der Code bleibt gültig.",
              "enrolOver": "Dieses Telefon wurde nicht rechtzeitig bestätigt. Holen Sie sich auf der Website einen neuen Code.",

              "notifications": "Benachrichtigungen", "notifyTitle": "Benachrichtigungen erhalten?", "notifyText": "Dann erreicht Sie eine Anfrage auch, wenn die App geschlossen ist. Ohne Benachrichtigungen öffnen Sie die App, um Anfragen zu sehen.", "notifyAllow": "Benachrichtigungen erlauben",
              "notify-granted": "Benachrichtigungen sind an.", "notify-default": "Benachrichtigungen sind aus. Öffnen Sie die App, um Anfragen zu sehen.", "notify-denied": "Der Browser blockiert die Benachrichtigungen dieser App. Erlauben Sie sie in seinen Einstellungen für diese Seite; bis dahin öffnen Sie die App, um Anfragen zu sehen.", "notify-none": "Dieser Browser hat für diese App keine Benachrichtigungen. Öffnen Sie die App, um Anfragen zu sehen.",

              "isThisYou": "Sind Sie das?", "agree": "Stimmen Sie zu?", "approvePhone": "Zu Ihrem Konto hinzufügen?", "approveRecovery": "Haben Sie das verloren?",
              "account": "Konto", "service": "Dienst", "action": "Vorgang", "device": "Neues Telefon", "place": "Ort", "ip": "IP-Adresse", "userAgent": "Browser", "askedAt": "Uhrzeit", "timeLeft": "Noch {time}",
              "demands": "{website} verlangt von diesem Telefon: {demands}. Ein Browser kann das nicht nachweisen; eine Bestätigung wird vielleicht abgelehnt.",
              "enrolKey": "Vergleichen Sie diesen Schlüssel mit dem auf dem neuen Telefon. Bestätigen Sie nur, was Sie selbst begonnen haben.", "enrolHint": "Damit kann man sich dann in Ihrem Konto bei {website} anmelden. Bestätigen Sie nur, was Sie selbst begonnen haben.",
              "recoverHint": "Bestätigen Sie nur, wenn Sie es selbst verloren haben. Wenn Sie nichts verloren haben, lehnen Sie ab.",
              "number": "Zahl auf der Website", "numberHint": "Geben Sie die Zahl ein, die Ihnen die Website jetzt zeigt.", "numberWrong": "Die Website zeigt eine Zahl mit {digits} Ziffern.",
              "notWhole": "Sie können antworten, wenn Sie die ganze Anfrage gesehen haben.", "showRest": "Rest anzeigen",
              "approve": "Bestätigen", "deny": "Ablehnen", "fraud": "Das war ich nicht",
              "fraudTitle": "War es jemand anderes?", "fraudText": "Die Anfrage wird abgelehnt, und alle Ihre Faktoren bei {website} werden gesperrt: Niemand kann sich anmelden, auch Sie nicht, bis ein Betreiber oder einer Ihrer Wiederherstellungscodes die Sperre aufhebt. Jemand kennt Ihr Passwort: Ändern Sie es.", "fraudYes": "Ja, mein Konto sperren",
              "sending": "Wird gesendet …", "sendingAgain": "Das Relay antwortet nicht. Dieselbe Antwort wird noch einmal gesendet …",
              "ownerAsked": "Bestätigen Sie mit Fingerabdruck, Gesicht oder Bildschirmsperre …", "ownerTitle": "Das Gerät hat Sie nicht erkannt", "ownerText": "Sie können ohne diese Prüfung bestätigen, aber die Website nimmt das vielleicht nicht an. Wenn das jedes Mal geschieht, wurde der Passkey dieses Kontos vielleicht vom Gerät gelöscht: Entfernen Sie dann dieses Telefon und fügen Sie es neu hinzu.", "ownerWithout": "Ohne Prüfung bestätigen", "ownerFailed": "Es wurde nichts gesendet. Sie können es noch einmal versuchen.",
              "forbidden": "{website} hat diese Bestätigung nicht angenommen. Lehnen Sie die Anfrage ab oder melden Sie sich mit einem anderen Faktor an.", "relaySays": "Das Relay meldet: {why}.",
              "forbiddenUnchecked": "{website} hat diese Bestätigung ohne die Prüfung nicht angenommen. Bestätigen Sie noch einmal und weisen Sie sich mit Fingerabdruck, Gesicht oder Bildschirmsperre aus, oder lehnen Sie die Anfrage ab.",
              "forbiddenNoCheck": "{website} hat diese Bestätigung nicht angenommen. Dieses Telefon wurde ohne Fingerabdruck, Gesicht oder Bildschirmsperre hinzugefügt, und die Website verlangt das vielleicht. Lehnen Sie die Anfrage ab oder melden Sie sich mit einem anderen Faktor an. Entfernen Sie danach dieses Telefon und fügen Sie es mit der Prüfung neu hinzu.",
              "approved": "Bestätigt", "approvedText": "{website} weiß jetzt, dass Sie es sind.",
              "notApproved": "Nicht bestätigt", "notApprovedText": "Das war nicht die Zahl auf der Website, oder die Website hat den Ort abgelehnt. Beginnen Sie dort noch einmal.",
              "denied": "Abgelehnt", "deniedText": "Die Anfrage von {website} wurde abgelehnt.",
              "frozen": "Gemeldet", "frozenText": "Die Anfrage wurde abgelehnt, und Ihr Konto bei {website} ist gesperrt. Jemand kennt Ihr Passwort: Ändern Sie es.",
              "over": "Anfrage geschlossen", "overText": "Diese Anfrage ist nicht mehr offen. Es wurde keine Antwort gesendet.", "decided": "Schon entschieden", "decidedText": "Eine andere Antwort war schneller: {login}.",
              "success": "bestätigt", "failure": "abgelehnt",
              "postureUnmet": "Dieses Telefon erfüllt nicht, was die Website verlangt: {demands}.",

              "decisions": "Letzte Entscheidungen", "decisionsText": "Die letzten 30 Entscheidungen auf diesem Gerät. Sie sind nirgends sonst gespeichert.", "noDecisions": "Noch keine Entscheidungen.", "recordLate": "Zu spät", "recordNotApproved": "Nicht bestätigt",

              "noCodes": "Mit Codes melden Sie sich ohne Verbindung an. Scannen Sie den Code, den die Website unter „Authenticator-App“ zeigt, oder holen Sie die Codes eines Kontos in seinen Einstellungen.", "addCode": "Code hinzufügen", "secondsLeft": "noch {seconds} s",
              "codeFor": "Code für {issuer}, {account}", "nextCode": "Nächster Code", "codeShown": "Code {code}",
              "removeCode": "Code für {issuer} entfernen", "removeCodeText": "Danach können Sie sich nicht mehr mit diesem Code anmelden.",
              "noCodeHere": "Kein Telefon und kein Code?", "recoveryCodeHint": "Verwenden Sie einen der Wiederherstellungscodes, die Ihnen die Website beim ersten Faktor gegeben hat. Jeder gilt einmal. Bewahren Sie sie auf Papier auf, nicht auf diesem Telefon.",

              "noNotices": "Keine neuen Mitteilungen.", "noticeGone": "Diese Mitteilung wurde gelöscht.", "olderNotices": "Ältere Mitteilungen", "noArchive": "Keine älteren Mitteilungen.", "fromWebsite": "Von {website}", "fromOperator": "Vom Betreiber des Relays von {website}",

              "language": "Sprache", "thisApp": "Diese App", "version": "Version", "fingerprint": "Fingerabdruck", "fingerprintHint": "Der Fingerabdruck umfasst alle Dateien der App. Vergleichen Sie ihn mit dem veröffentlichten dieser Version.",
              "storageKept": "Der Browser behält die Schlüssel dieser App.", "storageMayGo": "Der Browser darf die Schlüssel dieser App löschen, wenn der Platz knapp wird. Installieren Sie die App und bewahren Sie Ihre Sperr- und Wiederherstellungscodes auf.",
              "aboutKeys": "Ihr Browser erzeugt die Schlüssel dieser App, und niemand kann sie lesen.",
              "updateTitle": "Neue Version", "updateText": "Dieses Gerät behält die jetzige Version, bis Sie die neue annehmen. Offene Anfragen gehen nicht verloren.", "updateNone": "Das ist die neueste Version.", "updateTake": "Version {version} verwenden", "updateFailed": "Die neue Version wurde nicht übernommen, die jetzige bleibt: {why}",
              "versionNow": "Jetzige Version", "versionNew": "Neue Version", "filesChanged": "Geänderte Dateien", "relaysNew": "Neue Relays",

              "ownerCheckState": "Prüfung vor einer Bestätigung", "ownerChecked": "Fingerabdruck, Gesicht oder Bildschirmsperre", "ownerUnchecked": "keine",
              "refusedText": "Das Relay nimmt dieses Telefon zurzeit nicht an. Vielleicht ist es gesperrt; dann geht es wieder, sobald die Website es freigibt.",
              "unboundBy-phone": "Dieses Telefon wurde bei {website} entfernt. Löschen Sie es hier.", "unboundBy-code": "Dieses Telefon wurde bei {website} mit seinem Sperrcode entfernt. Löschen Sie es hier.", "unboundBy-website": "{website} hat dieses Telefon entfernt. Löschen Sie es hier.", "unboundBy-operator": "Der Betreiber hat dieses Telefon bei {website} entfernt. Löschen Sie es hier.",
              "codesAbout": "Codes dieses Kontos, für Anmeldungen ohne Verbindung.", "codesGet": "Codes holen", "codesForbidden": "Die Website gibt Telefonen keine Codes, oder nicht jetzt.", "codesTaken": "Es gibt Codes einer anderen App oder eines anderen Telefons, oder dieses Telefon wurde ohne Schlüssel für Codes hinzugefügt. Entfernen Sie sie auf der Website oder fügen Sie dieses Telefon neu hinzu.", "pinForCodes": "Die Website verlangt dafür Ihre PIN.",
              "clock": "Uhr", "clockAbout": "Codes und Anfragen brauchen die richtige Zeit. Die Zeit des Relays gilt nur für dieses Konto.", "clockCheck": "Mit dem Relay vergleichen", "clockRight": "Die Uhr dieses Geräts geht richtig.", "clockSlow": "Die Uhr dieses Geräts geht {seconds} Sekunden nach. Die App berichtigt das für dieses Konto; bitte stellen Sie die Uhr.", "clockFast": "Die Uhr dieses Geräts geht {seconds} Sekunden vor. Die App berichtigt das für dieses Konto; bitte stellen Sie die Uhr.",
              "removal": "Entfernen oder umziehen", "moveHint": "Für ein neues Telefon holen Sie sich bei {website} einen Code, scannen ihn mit dem neuen Telefon und bestätigen das neue Telefon hier. Danach entfernen Sie dieses.",
              "unbind": "Dieses Telefon entfernen", "unbindTitle": "Dieses Telefon bei {website} entfernen?", "unbindText": "{website} fragt dieses Telefon dann nicht mehr, und seine Schlüssel werden gelöscht.", "dropText": "Die Schlüssel werden auf diesem Gerät gelöscht. Wenn das Telefon nur gesperrt ist, kann es danach nicht mehr freigegeben werden.",

              "pin": "PIN", "puk": "PUK", "pinTitle": "PIN", "pinAbout": "Manche Websites verlangen neben dem Telefon eine PIN, gegen Diebe, die es entsperren können.", "pinManage": "PIN setzen oder ändern", "pinIsSet": "Eine PIN ist gesetzt.", "pinDone": "PIN gespeichert",
              "pin-set": "PIN setzen", "pin-set-text": "Wählen Sie 4 bis 12 Ziffern. Diese App speichert sie nicht.", "pin-change": "PIN ändern", "pin-change-text": "Geben Sie die alte PIN ein und die neue zweimal.", "pin-reset": "Mit der PUK zurücksetzen", "pin-reset-text": "Geben Sie die PUK ein, die Sie aufgeschrieben haben, und eine neue PIN zweimal.", "pin-unlock": "Code des Helpdesks verwenden", "pin-unlock-text": "Geben Sie den Code nur in diese App ein und nennen Sie ihn niemandem. Geben Sie dann eine neue PIN zweimal ein.",
              "pinOld": "Alte PIN", "pinNew": "Neue PIN", "pinAgain": "Neue PIN noch einmal", "unlockCode": "Code des Helpdesks",
              "pinForm": "Eine PIN hat 4 bis 12 Ziffern.", "pukForm": "Eine PUK hat 12 Ziffern.", "unlockForm": "Der Code hat 8 Ziffern.", "pinDiffers": "Die beiden PINs sind verschieden.", "pinWorks": "Der Schlüssel der PIN wird berechnet …",
              "pukHint": "Schreiben Sie sie auf und bewahren Sie sie anderswo auf. Mit ihr können Sie eine neue PIN setzen. Sie wird nur einmal angezeigt.",
              "pinNeeded": "{website} nimmt nur Telefone mit PIN an. Setzen Sie zuerst eine und bestätigen Sie dann.", "pinMissing": "Die Website verlangt eine PIN. Setzen Sie eine in den Einstellungen des Kontos.", "pinLocked": "Die PIN ist gesperrt. Dieses Telefon kann nur ablehnen, bis Sie die PIN zurücksetzen.", "pinWrong": "Die PIN war falsch. Verbleibende Versuche: {tries}.",
              "pukWrong": "Die PUK war falsch. Verbleibende Versuche: {tries}.", "pukLocked": "Auch die PUK ist gesperrt. Lassen Sie sich vom Helpdesk einen Code geben oder fügen Sie dieses Telefon neu hinzu.", "unlockWrong": "Der Code war falsch. Verbleibende Versuche: {tries}.", "unlockVoid": "Zurzeit gilt kein Code. Lassen Sie sich vom Helpdesk einen anderen geben.",

              "TWOEFAY_TITLE": "Anmeldung", "TWOEFAY_LOGIN": "Sind Sie das?", "TWOEFAY_LOGIN_SERVICE": "Sind Sie das, bei {0}?", "TWOEFAY_LOGIN_PLACE": "Sind Sie das, aus {0}?",
              "TWOEFAY_LOGIN_IP": "Sind Sie das, von {0}?", "TWOEFAY_LOGIN_SERVICE_PLACE": "Sind Sie das, bei {0}, aus {1}?", "TWOEFAY_LOGIN_SERVICE_IP": "Sind Sie das, bei {0}, von {1}?",
              "TWOEFAY_LOGIN_PLACE_IP": "Sind Sie das, aus {0} ({1})?", "TWOEFAY_LOGIN_SERVICE_PLACE_IP": "Sind Sie das, bei {0}, aus {1} ({2})?"
            }

            """#)
}
