// Written by dev/embed-pages from Assets/texts.en.json. Do not edit.
extension AppFile {
    static let textsEnJSON = AppFile(
        "texts.en.json", type: "application/json",
        text: #"""
            {
              "tag": "en",
              "skip": "Skip to content", "tabs": "Sections of this app", "counted": "{name} ({count})",
              "home": "Requests", "codes": "Codes", "notices": "Messages", "settings": "Settings",
              "done": "Done", "back": "Back", "cancel": "Cancel", "goOn": "Continue", "open": "Open", "save": "Save", "saved": "Saved.", "remove": "Remove", "look": "Show", "notNow": "Not now", "looking": "One moment …",
              "failed": "That did not work: {why}.", "slow": "Too many attempts. Try again in {seconds} seconds.",

              "needsSecure": "This page was not loaded over a secure connection, so the browser gives it no keys.",
              "needsCrypto": "This browser cannot make the keys that this app needs. Update the browser, or use another one.",
              "needsStorage": "This browser does not let the app store its keys. Leave private browsing, or use another browser.",
              "needsWorker": "This browser is too old for this app, or it is in private mode. Update it, or use another one.",
              "inFrame": "Another website shows this app inside its own page. Open the app by itself.",
              "cannotStart": "The app could not start: {why}. Load the page again.",
              "offline": "This device is offline. New requests arrive when it is online again.",
              "relayLost": "The relay cannot be reached. Trying again …",
              "updateReady": "A new version of this app is ready.",

              "noAccounts": "This app confirms your logins. To add your first account, open “My phones” on the website and scan the code that it shows.",
              "hadAccounts": "Did you have accounts here before?",
              "cleared": "The browser has deleted the keys of this app, so your accounts are gone from this device. Log in with another factor or a recovery code, remove the lost phone at the website (or with its revocation code), and add this phone again.",
              "accounts": "Accounts", "addAccount": "Add an account", "check": "Check for requests", "noRequests": "There are no requests.",
              "requests": "Open requests", "arrived": "A new request from {website}.", "hiddenRequest": "{website} sent a request that cannot be shown or answered here: {why}.",
              "stateBound": "active", "stateAsked": "waiting for approval", "stateRefused": "suspended", "stateUnbound": "removed",
              "recoveries": "A factor is about to be replaced", "recoveryText": "Somebody told {website} that {what} was lost. If it was not you, stop it now.", "recoveryReady": "The change is possible from {time}.",
              "recoveryStop": "I have lost nothing: stop this", "recoveryStopped": "The replacement was stopped.",
              "lost-totp": "your authenticator app", "lost-hotp": "your token", "lost-push": "your phone",

              "addText": "Scan the code on the website, or paste its link.", "scan": "Scan a code", "cameraView": "Picture of the camera", "cameraStarts": "Starting the camera …", "cameraLooks": "Hold the code in front of the camera.",
              "cameraDenied": "The browser does not allow this app to use the camera. Allow it in the browser's settings for this page, or paste the link.", "cameraNone": "The camera cannot be used. Paste the link instead.",
              "link": "Link", "linkHint": "It begins with https:, twoefay: or otpauth:.", "linkEmpty": "Paste the link first.",
              "linkRefused": "This link was not used",
              "linkUnknown": "This is not a link for this app. It must begin with https:, twoefay: or otpauth:.",
              "linkMalformed": "The link is damaged: {why}. Get a new one from the website.",
              "linkNativeOnly": "The website {website} takes native apps only, not this app in a browser. Nothing was sent. Install the app that the website recommends, and scan the code with it.",
              "linkOtherRelay": "This link is for {relay}. This app may not talk to that relay.",
              "linkOtherApp": "This link is for the app at {app}. Open it there.",
              "linkKeyAtRelay": "This link has a key of the website that the relay {relay} must never see. This app comes from that relay, which could read the key. Nothing was sent. Use a native app or the web app that the website recommends, and tell the website: its links for this app must not have the key.",

              "installTitle": "Install the app first", "installFirst": "On this device an installed app has its own storage. Install it first, and add your account inside the app. Otherwise the keys stay in this tab.",
              "installHow": "How to install", "installStep1": "Press the Share button of Safari.", "installStep2": "Choose “Add to Home Screen”.", "installStep3": "Open the app from the home screen.", "installStep4": "Scan the code there, or paste the link.",
              "copyLink": "Copy the link", "copied": "Copied. Paste it in the installed app within 10 minutes.", "notCopied": "The browser did not allow that. Scan the code inside the app instead.", "installHint": "You can install this app: choose “Install” or “Add to Home Screen” in the menu of the browser.",

              "bindTitle": "Add this phone?", "bindText": "From now on, {website} asks this phone whether a login is yours.", "website": "Website", "relay": "Relay",
              "phoneName": "Name of this phone", "phoneNameHint": "The website shows it to you. 64 characters at most.", "bindIt": "Add this phone",
              "ownerCheck": "Ask for my fingerprint, face or screen lock before each approval", "noOwnerCheck": "This device offers no fingerprint, face or screen lock to this app. Websites that require one will not accept its approvals.",
              "passkeyFailed": "The device did not confirm you. Try again, or go on without this check.",
              "binding": "Adding this phone …", "isBound": "Phone added", "notBound": "Phone not added", "boundText": "{website} now asks this phone whether a login is yours.",
              "revocation": "Code to remove a lost phone", "revocationHint": "Write it down and keep it elsewhere. It is shown only once.", "writtenDown": "I have written it down",
              "waits": "Approve this phone", "waitsText": "You already have a phone. Open the request there, compare the key, and enter this number:", "key": "Key of this phone",
              "stillTrying": "The relay does not answer. Trying again …",
              "enrolRefused": "This code was used before, is too old, or was refused. Get a new one from the website.",
              "enrolNotTaken": "{website} does not take this phone. It may take native apps only.",
              "enrolFull": "You have as many phones as the website allows. Remove one first; this code stays valid.",
              "enrolOver": "This phone was not approved in time. Get a new code from the website.",

              "notifications": "Notifications", "notifyTitle": "Be told about requests?", "notifyText": "Then a request reaches you when the app is closed, too. Without notifications, open the app to see requests.", "notifyAllow": "Allow notifications",
              "notify-granted": "Notifications are on.", "notify-default": "Notifications are off. Open the app to see requests.", "notify-denied": "The browser blocks notifications of this app. Allow them in its settings for this page; until then, open the app to see requests.", "notify-none": "This browser has no notifications for this app. Open the app to see requests.",

              "isThisYou": "Is this you?", "agree": "Do you agree?", "approvePhone": "Add this to your account?", "approveRecovery": "Have you lost this?",
              "account": "Account", "service": "Service", "action": "Action", "device": "New phone", "place": "Place", "ip": "IP address", "userAgent": "Browser", "askedAt": "Time", "timeLeft": "{time} left",
              "demands": "{website} demands of this phone: {demands}. A browser cannot prove that, so an approval may be refused.",
              "enrolKey": "Compare this key with the one on the new phone. Approve only what you have started yourself.", "enrolHint": "It can then be used to log in to your account at {website}. Approve only what you have started yourself.",
              "recoverHint": "Approve only if you have lost it yourself. If you have lost nothing, reject.",
              "number": "Number on the website", "numberHint": "Type the number that the website shows you now.", "numberWrong": "The website shows a number with {digits} digits.",
              "notWhole": "You can answer when you have seen the whole request.", "showRest": "Show the rest",
              "approve": "Approve", "deny": "Reject", "fraud": "This wasn't me",
              "fraudTitle": "Was it somebody else?", "fraudText": "The request is rejected, and all your factors at {website} are frozen: nobody can log in, you neither, until an operator or one of your recovery codes lifts the freeze. Somebody knows your password, so change it.", "fraudYes": "Yes, freeze my account",
              "sending": "Sending …", "sendingAgain": "The relay does not answer. The same answer is sent again …",
              "ownerAsked": "Confirm with your fingerprint, face or screen lock …", "ownerTitle": "The device did not confirm you", "ownerText": "You can approve without this check, but the website may not accept that. If this happens each time, the passkey of this account may have been deleted from the device: remove this phone then, and add it again.", "ownerWithout": "Approve without the check", "ownerFailed": "Nothing was sent. You can try again.",
              "forbidden": "{website} did not accept this approval. Reject the request, or log in with another factor.", "relaySays": "The relay says: {why}.",
              "forbiddenUnchecked": "{website} did not accept this approval without the check. Approve again and confirm with your fingerprint, face or screen lock, or reject the request.",
              "forbiddenNoCheck": "{website} did not accept this approval. This phone was added without a fingerprint, face or screen lock, which the website may demand. Reject the request, or log in with another factor. Then remove this phone, and add it again with the check.",
              "approved": "Approved", "approvedText": "{website} now knows that it is you.",
              "notApproved": "Not approved", "notApprovedText": "The number was not the one on the website, or the website refused the place. Start again there.",
              "denied": "Rejected", "deniedText": "The request from {website} was rejected.",
              "frozen": "Reported", "frozenText": "The request was rejected, and your account at {website} is frozen. Somebody knows your password: change it.",
              "over": "Request closed", "overText": "This request is no longer open. No answer was sent.", "decided": "Already decided", "decidedText": "Another answer was faster: {login}.",
              "success": "approved", "failure": "rejected",
              "postureUnmet": "This phone does not meet what the website demands: {demands}.",

              "decisions": "Last decisions", "decisionsText": "The last 30 decisions on this device. They are stored nowhere else.", "noDecisions": "No decisions yet.", "recordLate": "Too late", "recordNotApproved": "Not approved",

              "noCodes": "Codes let you log in without a connection. Scan the code that the website shows under “Authenticator app”, or get the codes of an account in its settings.", "addCode": "Add a code", "secondsLeft": "{seconds} s left",
              "codeFor": "Code for {issuer}, {account}", "nextCode": "Next code", "codeShown": "Code {code}",
              "removeCode": "Remove the code for {issuer}", "removeCodeText": "You can then no longer log in with this code.",
              "noCodeHere": "No phone and no code?", "recoveryCodeHint": "Use one of the recovery codes that the website gave you when you added your first factor. Each works once. Keep them on paper, not on this phone.",

              "noNotices": "No new messages.", "noticeGone": "This message was deleted.", "olderNotices": "Older messages", "noArchive": "No older messages.", "fromWebsite": "From {website}", "fromOperator": "From the operator of the relay of {website}",

              "language": "Language", "thisApp": "This app", "version": "Version", "fingerprint": "Fingerprint", "fingerprintHint": "The fingerprint covers all files of the app. Compare it with the published one of this version.",
              "storageKept": "The browser keeps the keys of this app.", "storageMayGo": "The browser may delete the keys of this app when space runs out. Install the app, and keep your revocation and recovery codes.",
              "aboutKeys": "Your browser makes the keys of this app, and nobody can read them.",
              "updateTitle": "New version", "updateText": "This device keeps the present version until you accept the new one. Open requests are not lost.", "updateNone": "This is the newest version.", "updateTake": "Use version {version}", "updateFailed": "The new version was not taken, and the present one stays: {why}",
              "versionNow": "Present version", "versionNew": "New version", "filesChanged": "Changed files", "relaysNew": "New relays",

              "ownerCheckState": "Check before an approval", "ownerChecked": "fingerprint, face or screen lock", "ownerUnchecked": "none",
              "refusedText": "The relay does not accept this phone now. It may be suspended; then it works again when the website resumes it.",
              "unboundBy-phone": "This phone was removed from {website}. Delete it here.", "unboundBy-code": "This phone was removed from {website} with its revocation code. Delete it here.", "unboundBy-website": "{website} has removed this phone. Delete it here.", "unboundBy-operator": "The operator has removed this phone from {website}. Delete it here.",
              "codesAbout": "Codes of this account, for logins without a connection.", "codesGet": "Get codes", "codesForbidden": "The website gives phones no codes, or not now.", "codesTaken": "There are codes of another app or phone, or this phone was bound without a key for codes. Remove them at the website, or add this phone again.", "pinForCodes": "The website wants your PIN for this.",
              "clock": "Clock", "clockAbout": "Codes and requests need the right time. The time of the relay counts for this account only.", "clockCheck": "Compare with the relay", "clockRight": "The clock of this device is right.", "clockSlow": "The clock of this device is {seconds} seconds slow. The app corrects that for this account; please set the clock.", "clockFast": "The clock of this device is {seconds} seconds fast. The app corrects that for this account; please set the clock.",
              "removal": "Remove or move", "moveHint": "To move to a new phone, get a code from {website}, scan it with the new phone, and approve the new phone here. Then remove this one.",
              "unbind": "Remove this phone", "unbindTitle": "Remove this phone from {website}?", "unbindText": "{website} no longer asks this phone, and its keys are deleted.", "dropText": "The keys are deleted on this device. If the phone is only suspended, it cannot be resumed afterwards.",

              "pin": "PIN", "puk": "PUK", "pinTitle": "PIN", "pinAbout": "Some websites want a PIN beside the phone, against a thief who can unlock it.", "pinManage": "Set or change the PIN", "pinIsSet": "A PIN is set.", "pinDone": "PIN stored",
              "pin-set": "Set a PIN", "pin-set-text": "Choose 4 to 12 digits. This app does not store them.", "pin-change": "Change the PIN", "pin-change-text": "Type the old PIN, and the new one twice.", "pin-reset": "Reset it with the PUK", "pin-reset-text": "Type the PUK that you wrote down, and a new PIN twice.", "pin-unlock": "Use a code of the help desk", "pin-unlock-text": "Type the code into this app only, and tell it to nobody. Then type a new PIN twice.",
              "pinOld": "Old PIN", "pinNew": "New PIN", "pinAgain": "New PIN again", "unlockCode": "Code of the help desk",
              "pinForm": "A PIN has 4 to 12 digits.", "pukForm": "A PUK has 12 digits.", "unlockForm": "The code has 8 digits.", "pinDiffers": "The two PINs differ.", "pinWorks": "Computing the key of the PIN …",
              "pukHint": "Write it down and keep it elsewhere. With it you can set a new PIN. It is shown only once.",
              "pinNeeded": "{website} accepts only phones with a PIN. Set one first, and then approve.", "pinMissing": "The website wants a PIN. Set one in the settings of the account.", "pinLocked": "The PIN is locked. This phone can only reject until you reset the PIN.", "pinWrong": "The PIN was wrong. Tries left: {tries}.",
              "pukWrong": "The PUK was wrong. Tries left: {tries}.", "pukLocked": "The PUK is locked, too. Ask the help desk for a code, or add this phone again.", "unlockWrong": "The code was wrong. Tries left: {tries}.", "unlockVoid": "No code is valid now. Ask the help desk for another one.",

              "TWOEFAY_TITLE": "Login request", "TWOEFAY_LOGIN": "Is this you?", "TWOEFAY_LOGIN_SERVICE": "Is this you, at {0}?", "TWOEFAY_LOGIN_PLACE": "Is this you, from {0}?",
              "TWOEFAY_LOGIN_IP": "Is this you, from {0}?", "TWOEFAY_LOGIN_SERVICE_PLACE": "Is this you, at {0}, from {1}?", "TWOEFAY_LOGIN_SERVICE_IP": "Is this you, at {0}, from {1}?",
              "TWOEFAY_LOGIN_PLACE_IP": "Is this you, from {0} ({1})?", "TWOEFAY_LOGIN_SERVICE_PLACE_IP": "Is this you, at {0}, from {1} ({2})?"
            }

            """#)
}
