<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * Webhooks of the relay: Standard Webhooks 1.0.
 *
 * The signature is checked over the bytes as they arrived, before one of them is parsed. Never let
 * a user in by a webhook alone: pass its data to `check`, with the login that this browser started.
 */
final class Webhooks
{
    private const TOLERANCE = 300;

    /** @var list<string> */
    private array $keys;

    /**
     * @param list<string> $secrets the lines of shop.secret and, while the secret changes, of
     *                              shop.secret.new
     */
    public function __construct(
        #[\SensitiveParameter] array $secrets,
        private readonly ?Store $store = null,
        private readonly World $world = new World(),
    ) {
        $this->keys = array_map(self::key(...), array_values($secrets));
        if ($this->keys === []) {
            throw new \InvalidArgumentException('a receiver of webhooks needs a secret');
        }
    }

    /**
     * The event of a webhook. Throws WebhookError: then answer 400, and do nothing else.
     *
     * @param array<string, string|list<string>> $headers as `getallheaders()` and PSR-7 have them
     */
    public function verify(array $headers, string $body): Event
    {
        $fields = [];
        foreach ($headers as $name => $value) {
            $fields[strtolower((string) $name)] = is_array($value) ? implode(', ', $value) : $value;
        }
        $id = $fields['webhook-id'] ?? '';
        $moment = $fields['webhook-timestamp'] ?? '';
        $signatures = $fields['webhook-signature'] ?? '';
        $isWhole = preg_match(Texts::ID, $id) === 1 && $signatures !== ''
            && preg_match('/\A[0-9]{1,11}\z/', $moment) === 1;
        if (!$isWhole) {
            throw new WebhookError('headers');
        }
        if (abs($this->world->now() - (int) $moment) > self::TOLERANCE) {
            throw new WebhookError('time');
        }
        if (!$this->isSigned("$id.$moment.$body", $signatures)) {
            throw new WebhookError('signature');
        }
        return self::event($id, $body);
    }

    /**
     * Handles a webhook, and returns the status to answer: 204, or 400.
     *
     * `$act` runs before the id is stored, so no event is lost. It may run twice if the process
     * dies in between: let it have the same effect then. If it throws, answer 500: the relay
     * retries.
     *
     * @param array<string, string|list<string>> $headers
     * @param callable(Event): void              $act
     */
    public function receive(array $headers, string $body, callable $act): int
    {
        try {
            $event = $this->verify($headers, $body);
        } catch (WebhookError) {
            return 400;
        }
        if ($this->store === null) {
            $act($event);
        } elseif (!$this->store->hasSeen($event->id)) {
            $this->unpin($event);
            $act($event);
            $this->store->see($event->id, $this->world->now());
        }
        return 204;
    }

    /**
     * A lost phone must not count, whatever the relay says later. The user stays one who had a
     * phone: the relay, which signs webhooks, cannot make room for another one.
     */
    private function unpin(Event $event): void
    {
        $token = $event->data['token'] ?? null;
        $device = $event->data['device'] ?? null;
        $areIds = is_string($token) && preg_match(Texts::ID, $token) === 1
            && is_string($device) && preg_match(Texts::ID, $device) === 1;
        if ($event->type === 'device.unbound' && $areIds) {
            $this->store->unpinByToken($token, $device);
        }
    }

    private function isSigned(string $signed, string $signatures): bool
    {
        $own = [];
        foreach ($this->keys as $key) {
            $own[] = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
        }
        $isSigned = false;
        foreach (explode(' ', $signatures) as $given) {
            foreach ($own as $one) { // no early end: the time must not tell which of them matched
                $isSigned = hash_equals($one, $given) || $isSigned;
            }
        }
        return $isSigned;
    }

    private static function key(#[\SensitiveParameter] string $secret): string
    {
        $key = base64_decode(preg_replace('/\Awhsec_/', '', trim($secret)), true);
        // An empty key would accept what anybody signs; Standard Webhooks wants 24 bytes.
        if ($key === false || strlen($key) < 24) {
            throw new \InvalidArgumentException(
                'a secret of webhooks is whsec_ and base64 of 24 bytes or more'
            );
        }
        return $key;
    }

    private static function event(string $id, string $body): Event
    {
        try {
            $value = Json::object($body);
        } catch (\DomainException) {
            throw new WebhookError('body');
        }
        $type = $value->type ?? null;
        $timestamp = $value->timestamp ?? null;
        $data = $value->data ?? null;
        if (!is_string($type) || !is_string($timestamp) || !$data instanceof \stdClass) {
            throw new WebhookError('body');
        }
        return new Event($id, $type, $timestamp, Json::arrays($data));
    }
}
