<?php

declare(strict_types=1);

// What the example sites share: a shop whose users log in with a password and their phone.
// SHOP_FILES is the directory with relay/ca.pem, shop.pem and shop.key; SHOP_RELAY the relay's
// origin.

use Twoefay\Conflict;
use Twoefay\Enrolment;
use Twoefay\Relay;
use Twoefay\SecondFactor;
use Twoefay\SQLiteStore;

require __DIR__ . '/../autoload.php'; // with Composer: vendor/autoload.php

const PASSWORDS = [ // in place of your own check
    'ada' => 'correct horse',
    'bob' => 'battery staple',
    'cleo' => 'open sesame',
];

const HELP = 'No phone of yours counts here at present. Try again, or ask the help desk.';

const FORM = <<<'HTML'
    <!doctype html><title>Shop</title>
    <form method="post" action="/login">
    <input name="username"><input name="password" type="password"><button>Log in</button>
    </form>
    HTML;

const SESSION = [
    'use_strict_mode' => '1',
    'cookie_httponly' => '1',
    'cookie_secure' => '1',
    'cookie_samesite' => 'Lax',
];

function files(): string
{
    return getenv('SHOP_FILES') ?: getcwd();
}

function relay(): Relay
{
    $at = files();
    return new Relay(
        getenv('SHOP_RELAY') ?: 'https://localhost:8080',
        ca: "$at/relay/ca.pem",
        certificate: "$at/shop.pem",
        key: "$at/shop.key",
        store: new SQLiteStore("$at/shop.db"),
    );
}

function second_factor(Relay $relay): SecondFactor
{
    return new SecondFactor($relay, function (string $username): void {
        $_SESSION['user'] = $username;
        error_log("shop: $username is let in");
    });
}

/** The user who is logged in. A visitor without a session gets none here. */
function visitor(): ?string
{
    if (isset($_COOKIE[session_name()])) {
        session_start(['read_and_close' => '1'] + SESSION);
    }
    return $_SESSION['user'] ?? null;
}

function home(): string
{
    $user = visitor();
    return $user === null ? FORM : 'Welcome, ' . htmlspecialchars($user);
}

function is_password(mixed $username, mixed $password): bool
{
    return is_string($username) && is_string($password)
        && isset(PASSWORDS[$username]) && hash_equals(PASSWORDS[$username], $password);
}

/**
 * The code for a user's first phone; null once a phone has read it.
 *
 * Never call it for a user who had a phone: who has only the password would get a code.
 */
function first_code(Relay $relay, string $username): ?Enrolment
{
    try {
        return $relay->register($username);
    } catch (Conflict) {
        return $relay->confirm($username) === [] ? $relay->enrolment($username) : null;
    }
}

/**
 * What comes before the second factor: the code for a first phone, or help; null if a phone counts.
 *
 * @return array{int, string}|null the status and the page
 */
function before_second_factor(Relay $relay, string $username): ?array
{
    try {
        if (!$relay->isEnrolled($username)) {
            $code = first_code($relay, $username);
            return $code === null ? null : [200, $code->qr()];
        }
        $counts = $relay->store->pins($username) !== [] || $relay->confirm($username) !== [];
        return $counts ? null : [403, HELP];
    } catch (Twoefay\TwoefayError $error) {
        error_log('shop: a phone cannot be bound: ' . get_class($error));
        return [403, HELP];
    }
}
