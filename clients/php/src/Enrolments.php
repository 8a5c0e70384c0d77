<?php

declare(strict_types=1);

namespace Twoefay;

/** Users and their phones at the relay. Relay documents each call. */
final class Enrolments
{
    public function __construct(
        private readonly Policy $policy,
        private readonly Store $store,
        private readonly Client $client,
        private readonly World $world,
    ) {
    }

    /** @param array<string, string|null> $optional */
    public function register(string $username, array $optional): Enrolment
    {
        Texts::segment($username);
        $isGiven = static fn(?string $value): bool => $value !== null;
        $body = ['username' => $username] + array_filter($optional, $isGiven);
        try {
            $answer = $this->client->send(new Call('POST', '/register', $body), 201);
        } catch (ShownOnce) {
            // A lost answer to an attempt that was done: the user exists, without a phone.
            return $this->enrolment($username, null);
        }
        $activation = $answer->activation ?? null;
        if (!$activation instanceof \stdClass) {
            throw new OddAnswer('activation is no object');
        }
        return $this->keep($username, Answer::id($answer, 'token'), $activation);
    }

    public function enrolment(string $username, ?string $approval): Enrolment
    {
        $path = self::path($username) . '/activation';
        $token = $this->store->token($username) ?? Answer::id($this->user($username), 'token');
        $body = $approval === null ? [] : ['approval' => $approval];
        $activation = $this->client->send(new Call('POST', $path, $body), 201, 202);
        return $this->keep($username, $token, $activation);
    }

    private function keep(string $username, string $token, \stdClass $activation): Enrolment
    {
        $k = $this->world->random(32);
        $made = Enrolment::read($this->policy, $token, $activation, $k);
        $this->store->addUser($username, $token);
        if ($made->uri !== null) {
            $this->store->addSecret($username, $k, $this->world->now());
        }
        return $made;
    }

    /**
     * Pins every active phone with a right binding.
     *
     * @return list<string>
     */
    public function confirm(string $username): array
    {
        $user = $this->user($username);
        $token = Answer::id($user, 'token');
        $stored = $this->store->token($username);
        if ($stored !== null && $stored !== $token) {
            throw new BindingError('token');
        }
        // Once for all devices: a long answer must not open a connection to the store for each.
        $secrets = $this->store->secrets($username, $this->world->now());
        $done = $this->store->pins($username);
        $fault = null;
        $pinned = [];
        foreach (Answer::objects($user, 'devices') as $device) {
            $id = Answer::id($device, 'device');
            $isActive = ($device->state ?? null) === 'active' && isset($device->binding);
            if (isset($done[$id]) || !$isActive) {
                continue;
            }
            try {
                [$jwk, $k] = (new BindingCheck($this->policy, $token, $secrets))->key($device);
            } catch (BindingError $error) {
                $fault = $error;
                continue;
            }
            if ($this->store->pin($username, $id, $jwk, $k)) {
                $pinned[] = $id;
            }
            $done[$id] = true;
            $secrets = $this->store->secrets($username, $this->world->now());
        }
        if ($fault !== null && $pinned === []) {
            throw $fault;
        }
        return $pinned;
    }

    public function user(string $username): \stdClass
    {
        return $this->client->send(new Call('GET', self::path($username)), 200);
    }

    /** @return list<Factor> */
    public function factors(string $username): array
    {
        return array_map(
            static fn(\stdClass $entry): Factor => new Factor(
                Answer::text($entry, 'kind'),
                Answer::text($entry, 'state'),
                Answer::optional($entry, 'address'),
                Answer::optional($entry, 'device'),
            ),
            Answer::objects($this->user($username), 'factors'),
        );
    }

    public function unbind(string $username, string $device): void
    {
        // First here: the phone must not count even if the relay cannot be reached.
        $path = self::path($username) . '/devices/' . Texts::segment($device);
        $this->store->unpin($username, $device);
        $this->delete($path);
    }

    public function forget(string $username): void
    {
        $this->delete(self::path($username));
        $this->store->forget($username);
    }

    private function delete(string $path): void
    {
        try {
            $this->client->send(new Call('DELETE', $path), 204);
        } catch (NotFound) { // deleted before, or by an attempt whose answer was lost
        }
    }

    private static function path(string $username): string
    {
        return '/user/' . Texts::segment($username);
    }
}
