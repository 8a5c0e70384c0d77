<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * A store in memory: for tests and trials.
 *
 * It forgets all pinned keys when the process ends. Under a web server that is after each request.
 */
final class MemoryStore implements Store
{
    // PHP makes an integer of a key such as "47", so keys have a "=" in front.

    /** @var array<string, string> */
    private array $tokens = [];

    /** @var array<string, array<string, int>> the times of the secrets in hexadecimal digits */
    private array $secrets = [];

    /** @var array<string, array<string, array<string, mixed>|null>> null: unpinned */
    private array $pins = [];

    /** @var array<string, int> */
    private array $open = [];

    /** @var array<string, int> */
    private array $seen = [];

    public function addUser(string $username, string $token): void
    {
        $this->tokens["=$username"] = $token;
    }

    public function token(string $username): ?string
    {
        return $this->tokens["=$username"] ?? null;
    }

    public function addSecret(string $username, #[\SensitiveParameter] string $k, int $now): void
    {
        $this->secrets["=$username"]['=' . bin2hex($k)] = $now;
    }

    public function secrets(string $username, int $now): array
    {
        $isOpen = static fn(int $at): bool => $at > $now - self::SECRET_LIFE;
        $open = array_filter($this->secrets["=$username"] ?? [], $isOpen);
        $k = static fn(string $key): string => hex2bin(substr($key, 1));
        return array_map($k, array_keys($open));
    }

    public function pin(
        string $username,
        string $device,
        array $jwk,
        #[\SensitiveParameter] string $k,
    ): bool {
        $phones = $this->pins["=$username"] ?? [];
        $isOpen = isset($this->secrets["=$username"]['=' . bin2hex($k)]);
        if (!$isOpen || array_key_exists("=$device", $phones)) {
            return false;
        }
        unset($this->secrets["=$username"]);
        $this->pins["=$username"]["=$device"] = $jwk;
        return true;
    }

    public function pins(string $username): array
    {
        $pins = [];
        foreach ($this->pins["=$username"] ?? [] as $device => $jwk) {
            if ($jwk !== null) {
                $pins[substr($device, 1)] = $jwk;
            }
        }
        return $pins;
    }

    public function wasPinned(string $username): bool
    {
        return ($this->pins["=$username"] ?? []) !== [];
    }

    public function unpin(string $username, string $device): void
    {
        $phones = $this->pins["=$username"] ?? [];
        $wasUnpinned = array_key_exists("=$device", $phones) && $phones["=$device"] === null;
        if ($wasUnpinned) {
            return;
        }
        unset($this->secrets["=$username"]);
        if (isset($phones["=$device"])) {
            $this->pins["=$username"]["=$device"] = null;
        }
    }

    public function unpinByToken(string $token, string $device): void
    {
        foreach (array_keys($this->tokens, $token, true) as $name) {
            $this->unpin(substr($name, 1), $device);
        }
    }

    public function forget(string $username): void
    {
        unset($this->tokens["=$username"], $this->secrets["=$username"], $this->pins["=$username"]);
    }

    public function open(string $request, int $now): void
    {
        $isYoung = static fn(int $at): bool => $at > $now - self::REQUEST_LIFE;
        $this->open = ["=$request" => $now] + array_filter($this->open, $isYoung);
    }

    public function spend(string $request): bool
    {
        $wasOpen = isset($this->open["=$request"]);
        unset($this->open["=$request"]);
        return $wasOpen;
    }

    public function hasSeen(string $event): bool
    {
        return isset($this->seen["=$event"]);
    }

    public function see(string $event, int $now): void
    {
        $isYoung = static fn(int $at): bool => $at > $now - self::EVENT_LIFE;
        $this->seen = ["=$event" => $now] + array_filter($this->seen, $isYoung);
    }
}
