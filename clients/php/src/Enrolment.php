<?php

declare(strict_types=1);

namespace Twoefay;

/** What the user needs to bind a phone. Show it once, to the logged-in user, and log none of it. */
final class Enrolment
{
    private const START = 'twoefay://enrol?';

    /**
     * @param string      $token  the user's id at the relay
     * @param string|null $uri    the link for an app on the same device, with the website's secret
     *                            `k`; with `appOrigin`, it leads to that web app. Null if the relay
     *                            mails the code
     * @param string|null $sentTo the masked address to which the relay mails the code
     * @param string|null $awaits `identity` until an operator has confirmed who the user is
     */
    private function __construct(
        public readonly string $token,
        #[\SensitiveParameter] public readonly ?string $uri = null,
        public readonly ?string $sentTo = null,
        public readonly ?string $awaits = null,
        public readonly ?string $expiresAt = null,
    ) {
    }

    /** Reads the relay's activation, and adds `k`. */
    public static function read(
        Policy $policy,
        string $token,
        \stdClass $activation,
        #[\SensitiveParameter] string $k,
    ): self {
        if (isset($activation->awaits)) {
            return new self($token, awaits: Answer::text($activation, 'awaits'));
        }
        $expiresAt = Answer::text($activation, 'expires_at');
        if (isset($activation->sent_to)) {
            $sentTo = Answer::text($activation, 'sent_to');
            return new self($token, sentTo: $sentTo, expiresAt: $expiresAt);
        }
        $uri = Answer::text($activation, 'uri');
        self::requireOpenEnd($uri);
        if ($policy->appOrigin !== null) {
            // A browser sends no fragment, so no server gets `k`.
            $uri = "$policy->appOrigin/phone/#" . substr($uri, strlen(self::START));
        }
        $uri .= $policy->phones === 'any' ? '' : "&phones=$policy->phones";
        return new self($token, "$uri&k=" . Base64Url::encode($k), expiresAt: $expiresAt);
    }

    /** The QR code as SVG, to stand in HTML. It is drawn here, since the relay must not see `k`. */
    public function qr(): string
    {
        if ($this->uri === null) {
            throw new \LogicException('the relay mails this code: there is nothing to draw');
        }
        return QrCode::of($this->uri)->svg('QR code for your phone');
    }

    /** Without the secret, for var_dump and for loggers that write out objects. */
    public function __debugInfo(): array
    {
        return ['uri' => $this->uri === null ? null : '(secret)'] + get_object_vars($this);
    }

    /** The relay must not choose `k`, and nothing may follow that hides the one of the website. */
    private static function requireOpenEnd(string $uri): void
    {
        $isOpen = str_starts_with($uri, self::START)
            && preg_match('#\A[A-Za-z0-9%&=._~:/?-]{1,2000}\z#', $uri) === 1;
        if (!$isOpen) {
            throw new OddAnswer("the relay's activation is no URI to which k can be added");
        }
        foreach (explode('&', substr($uri, strlen(self::START))) as $pair) {
            if (urldecode(explode('=', $pair, 2)[0]) === 'k') {
                throw new OddAnswer("the relay's activation already has a k");
            }
        }
    }
}
