<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Known browsers: a cookie that keeps an attacker with a password from disturbing the owner's
 * logins.
 *
 * It lets nobody in and is no second factor. It only decides which logins share a limit. The form
 * is that of the other clients, so that all servers of a website accept it. Set the cookie with
 * HttpOnly, Secure, SameSite=Lax and a Max-Age of LIFE, after a login whose proof was checked. Pass
 * `knows(…)` as `known` to `ask`.
 */
final class KnownBrowsers
{
    public const LIFE = 180 * 86_400;

    /** @param string $key a secret of the website, at least 32 bytes */
    public function __construct(
        #[\SensitiveParameter] private readonly string $key,
        private readonly World $world = new World(),
    ) {
        if (strlen($key) < 32) {
            throw new \InvalidArgumentException('the key needs at least 32 bytes');
        }
    }

    public function value(string $username): string
    {
        $body = pack('J', $this->world->now()) . $this->world->random(12);
        return Base64Url::encode($body . $this->tag($body, $username));
    }

    /**
     * Whether the cookie was made for this user, and not before `$notBefore`, such as the time of
     * the last change of the password.
     */
    public function knows(?string $value, string $username, int $notBefore = 0): bool
    {
        try {
            $data = Base64Url::decode($value ?? '');
        } catch (\DomainException) {
            return false;
        }
        $tag = $this->tag(substr($data, 0, 20), $username);
        if (strlen($data) !== 52 || !hash_equals($tag, substr($data, 20))) {
            return false;
        }
        $made = unpack('J', $data)[1];
        $now = $this->world->now();
        return $made <= $now + 60 && $now < $made + self::LIFE && $made >= $notBefore;
    }

    private function tag(string $body, string $username): string
    {
        return hash_hmac('sha256', "twoefay known browser\0$body$username", $this->key, true);
    }
}
