<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The second factor for plain PHP pages: the page that waits for the phone.
 *
 *     $factor = new SecondFactor($relay, function (string $username): void {
 *         $_SESSION['user'] = $username; // in a new session
 *     }, '/second-factor.php');
 *
 * After the right password: `$factor->start($username)->send()`. The page itself is one line:
 * `$factor->run()`. It shows how a login stands by `state`, which is unchecked and lets nobody in.
 * Only its POST checks the receipt and lets the visitor in, so a request of another site cannot.
 * Start no session in the page yourself: it does so, and closes it in time.
 */
final class SecondFactor
{
    public const TEMPLATE = __DIR__ . '/../templates/waiting.php';

    private readonly VisitorSession $session;

    /**
     * @param \Closure(string): void $onApproved gets the name of the user whose phone has approved,
     *                                           and fills $_SESSION, which is empty and new
     * @param string                 $url        of the page, as the browser sees it
     * @param string                 $template   a file like the one of this package
     */
    public function __construct(
        private readonly Relay $relay,
        private readonly \Closure $onApproved,
        public readonly string $url = '/second-factor',
        private readonly string $template = self::TEMPLATE,
    ) {
        $this->session = new VisitorSession();
    }

    /**
     * Asks the user's phone, and leads to the waiting page.
     *
     * @param string $target   where an approval leads, a path of this website
     * @param mixed  ...$asked named arguments of Relay::ask; they win over those of the request
     */
    public function start(string $username, string $target = '/', mixed ...$asked): Reply
    {
        $asked += [
            'ip' => $_SERVER['REMOTE_ADDR'] ?? null,
            'userAgent' => $_SERVER['HTTP_USER_AGENT'] ?? null,
            'acceptLanguage' => $_SERVER['HTTP_ACCEPT_LANGUAGE'] ?? null,
        ];
        try {
            $login = $this->relay->ask($username, ...$asked);
        } catch (TwoefayError $error) {
            return $this->show(null, Page::ofError($error));
        }
        $this->session->begin([
            'login' => $login->toJson(),
            'token' => Base64Url::encode(random_bytes(18)),
            'target' => Texts::localPath($target),
        ]);
        return Reply::redirect($this->url);
    }

    /** Answers the request of a plain PHP page. */
    public function run(): void
    {
        $this->answer($_SERVER['REQUEST_METHOD'], isset($_GET['state']), $_POST)->send();
    }

    /**
     * The answer to a request for the page, or for the state that its script asks for.
     *
     * @param array<mixed> $form
     */
    public function answer(string $method, bool $isState, array $form): Reply
    {
        if ($method === 'POST') {
            try {
                return $this->finish($form);
            } finally {
                $this->session->close();
            }
        }
        if ($method !== 'GET' && $method !== 'HEAD') {
            return new Reply(405, ['allow' => 'GET, HEAD, POST']);
        }
        $kept = $this->session->open();
        $this->session->close(); // the relay is asked without the lock
        $page = new Page(isset($kept['login']) ? '' : 'Log in again.');
        return $isState ? $this->state($kept) : $this->show($kept, $page);
    }

    /** @param array<string, mixed>|null $kept */
    private function state(?array $kept): Reply
    {
        $status = 200;
        $ended = true;
        if (isset($kept['login'])) {
            try {
                $login = Login::fromJson($kept['login']);
                $ended = $this->relay->state($login)['login'] !== 'wait';
            } catch (NotFound) { // the submission tells
            } catch (TwoefayError) {
                [$status, $ended] = [503, false];
            }
        }
        $headers = ['content-type' => 'application/json', 'cache-control' => 'no-store'];
        return new Reply($status, $headers, json_encode(['ended' => $ended]));
    }

    /** @param array<mixed> $form */
    private function finish(array $form): Reply
    {
        $kept = $this->session->open();
        $given = $form['form_token'] ?? null;
        if ($kept === null || !is_string($given) || !hash_equals($kept['token'], $given)) {
            return $this->show(null, new Page('Log in again.', 403, ended: true));
        }
        if (!isset($kept['login'])) {
            return $this->follow($kept);
        }
        $login = Login::fromJson($kept['login']);
        $code = $this->codeOf($form);
        try {
            if (strlen($code) > 64 || preg_match('//u', $code) !== 1) {
                return $this->show($kept, new Page('This input was not accepted.', 400));
            }
            $decision = $code === ''
                ? $this->relay->wait($login, within: 0)
                : $this->relay->enter($login, $code);
        } catch (TwoefayError $error) {
            $isSpent = $error instanceof ReceiptError && $error->reason === 'request_used';
            $left = $isSpent ? $this->session->left($kept['token']) : null;
            return $left === null ? $this->show($kept, Page::ofError($error)) : $this->follow($left);
        }
        if (!$decision->approved) {
            return $this->show($kept, Page::ofDecision($decision, $code !== ''));
        }
        $left = ['token' => $kept['token'], 'target' => $kept['target']];
        $this->session->move($left, fn() => ($this->onApproved)($login->username()));
        return Reply::redirect($kept['target']);
    }

    /**
     * The answer to a click that was let in before.
     *
     * @param array<string, mixed> $left
     */
    private function follow(array $left): Reply
    {
        $this->session->follow($left['to'], $left['at']);
        return Reply::redirect($left['target']);
    }

    /** @param array<mixed> $form */
    private function codeOf(array $form): string
    {
        $code = $form['code'] ?? '';
        return is_string($code) && $this->relay->policy->acceptCodes ? trim($code) : '';
    }

    /** @param array<string, mixed>|null $kept */
    private function show(?array $kept, Page $page): Reply
    {
        if ($page->ended && $kept !== null) {
            $this->session->forget();
        }
        $nonce = Base64Url::encode(random_bytes(16));
        $values = [
            'number' => $kept['login']['number'] ?? null,
            'token' => $kept['token'] ?? '',
            'message' => $page->message,
            'ended' => $page->ended || !isset($kept['login']),
            'nonce' => $nonce,
            'stateUrl' => $this->url . (str_contains($this->url, '?') ? '&' : '?') . 'state',
            'codes' => $this->relay->policy->acceptCodes,
        ];
        return new Reply($page->status, self::headers($nonce, $page), $this->render($values));
    }

    /** @param array<string, mixed> $values */
    private function render(array $values): string
    {
        // A function of its own: the template sees these values, and nothing of this object.
        $include = static function (string $template, array $page): void {
            include $template;
        };
        ob_start();
        try {
            $include($this->template, $values);
            return ob_get_contents();
        } finally {
            ob_end_clean();
        }
    }

    /**
     * A strict policy: nothing from elsewhere, no script but the one with this nonce.
     *
     * @return array<string, string>
     */
    private static function headers(string $nonce, Page $page): array
    {
        $policy = "default-src 'none'; script-src 'nonce-$nonce'; style-src 'nonce-$nonce'; "
            . "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
        $headers = [
            'content-type' => 'text/html; charset=utf-8',
            'content-security-policy' => $policy,
            'cache-control' => 'no-store',
            'referrer-policy' => 'no-referrer',
            'x-content-type-options' => 'nosniff',
        ];
        $pause = $page->retryAfter;
        return $pause === null ? $headers : $headers + ['retry-after' => (string) $pause];
    }
}
