/// Programs that log a user in with the code of docs/websites/by-hand.md and print the same lines.
/// `twoefay phone` is the phone. The user's name has to be escaped in a path.
enum GuideDriver {
    static let python = #"""
        import os, subprocess, sys
        import website

        phone = [os.environ["TWOEFAY"], "phone"]
        keys = ["--keys", "phone"]


        def say(*words):
            print(*words, flush=True)


        def log_in(word):
            asked = website.ask("ada/1", "203.0.113.7", "Firefox/140")
            number = ["--number", asked["number"]] if word == "approve" else []
            person = subprocess.Popen(phone + [word, "--challenge", asked["challenge"]] + number + keys, stdout=subprocess.DEVNULL)
            answer = website.wait(asked)
            assert person.wait() == 0
            return asked, answer


        class Server(website.ThreadingHTTPServer):
            def server_activate(self):
                super().server_activate()
                say("listening")


        if sys.argv[1] == "listen":
            website.ThreadingHTTPServer = Server
            website.listen(int(sys.argv[2]), lambda type, data: say(type, data["token"]))
        subprocess.run(phone + ["enrol", website.register("ada/1", "ada@example.com")] + keys, check=True, stdout=subprocess.DEVNULL)
        website.pin_phones("ada/1")
        asked, answer = log_in("approve")
        say(answer["login"], answer["proof"], website.is_let_in(asked, answer))
        say("again", website.is_let_in(asked, answer))
        asked, answer = log_in("deny")
        say(answer["login"], answer["reason"], website.is_let_in(asked, answer))
        try:
            website.ask("bob", "203.0.113.7", "Firefox/140")
        except website.Refused as refused:
            say(refused.status, refused.problem["code"])

        """#

    static let javaScript = #"""
        import { execFile } from "node:child_process";
        import { promisify } from "node:util";
        import * as website from "./website.mjs";

        const run = promisify(execFile);
        const phone = (...words) => run(process.env.TWOEFAY, ["phone", ...words, "--keys", "phone"]);

        async function logIn(word) {
          const asked = await website.ask("ada/1", "203.0.113.7", "Firefox/140 (X11)");
          const number = word === "approve" ? ["--number", asked.number] : [];
          const [answer] = await Promise.all([website.wait(asked), phone(word, "--challenge", asked.challenge, ...number)]);
          return [asked, answer];
        }

        if (process.argv[2] === "listen") {
          website.listen(Number(process.argv[3]), (type, data) => console.log(type, data.token))
            .on("listening", () => console.log("listening"));
        } else {
          await phone("enrol", await website.register("ada/1", "ada@example.com"));
          await website.pinPhones("ada/1");
          let [asked, answer] = await logIn("approve");
          console.log(answer.login, answer.proof, await website.isLetIn(asked, answer));
          console.log("again", await website.isLetIn(asked, answer));
          [asked, answer] = await logIn("deny");
          console.log(answer.login, answer.reason, await website.isLetIn(asked, answer));
          await website.ask("bob", "203.0.113.7", "Firefox/140").catch((error) => console.log(error.status, error.problem.code));
          process.exit();
        }

        """#

    static let php = #"""
        <?php
        require 'website.php';

        function phone(string ...$words)
        {
            $person = proc_open([getenv('TWOEFAY'), 'phone', ...$words, '--keys', 'phone'], [1 => ['file', '/dev/null', 'w']], $pipes);
            return $person;
        }

        function log_in(string $word): array
        {
            $asked = ask('ada/1', '203.0.113.7', 'Firefox/140 (X11)');
            $number = $word === 'approve' ? ['--number', $asked['number']] : [];
            $person = phone($word, '--challenge', $asked['challenge'], ...$number);
            $answer = wait($asked);
            proc_close($person) === 0 || throw new Exception('the phone failed');
            return [$asked, $answer];
        }

        function say(...$words): void
        {
            echo implode(' ', array_map(fn ($word) => is_bool($word) ? ($word ? 'true' : 'false') : $word, $words)), "\n";
        }

        proc_close(phone('enrol', register('ada/1', 'ada@example.com'))) === 0 || throw new Exception('the phone failed');
        pin_phones('ada/1');
        [$asked, $answer] = log_in('approve');
        say($answer['login'], $answer['proof'], is_let_in($asked, $answer));
        say('again', is_let_in($asked, $answer));
        [$asked, $answer] = log_in('deny');
        say($answer['login'], $answer['reason'], is_let_in($asked, $answer));
        try {
            ask('bob', '203.0.113.7', 'Firefox/140');
        } catch (Refused $refused) {
            say($refused->status, $refused->problem['code']);
        }

        """#

    static let shell = #"""
        set -eu
        . ./website.sh
        uri=$(register ada/1 ada@example.com | jq -r .activation.uri)
        "$TWOEFAY" phone enrol "$uri" --keys phone > /dev/null
        user ada/1 | jq -r '.devices[].state'
        log_in() {
            asked=$(ask ada/1 203.0.113.7)
            challenge=$(printf %s "$asked" | jq -r .challenge)
            number=$(printf %s "$asked" | jq -r .number)
            [ "$1" = approve ] && set -- approve --number "$number"
            "$TWOEFAY" phone "$@" --challenge "$challenge" --keys phone > /dev/null &
            wait_for "$challenge" | jq -r '[.login, .proof, .reason] | map(. // "") | join(" ")'
        }
        log_in approve
        log_in deny
        ask bob 203.0.113.7 | jq -r .code

        """#
}
