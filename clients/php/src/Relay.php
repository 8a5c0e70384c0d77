<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * The relay, for one website.
 *
 *     $relay = new Relay('https://login.example.com:8080', ca: __DIR__ . '/ca.pem',
 *         certificate: __DIR__ . '/shop.pem', key: __DIR__ . '/shop.key',
 *         store: new SQLiteStore(__DIR__ . '/shop.db'));
 */
final class Relay
{
    public readonly Policy $policy;
    public readonly Store $store;
    private Client $client;
    private Enrolments $enrolments;
    private Logins $logins;

    /**
     * `$acceptCodes` lets users in by codes too, for which only the relay vouches. `$allowUnpinned`
     * trusts the relay for users without a pinned phone. Both give up a part of the strong form.
     *
     * @param string $origin the relay's, as in its settings: https://login.example.com:8080
     * @param string $ca     the relay's ca.pem
     * @param string $certificate the website's shop.pem
     * @param string $key    the website's shop.key
     * @param Store  $store  keeps the pinned keys
     * @param string $phones the phones that `confirm` pins: any, native (apps) or web (browsers)
     * @param string|null $appOrigin the origin of the only web app whose phones `confirm` pins. The
     *                       QR code opens that app. Null: any web app but those at the relay's host
     * @param list<string> $loginOrigins the origins of your pages on which users type their
     *                       password. Without them, the success of a web phone never counts as
     *                       `high`; with them, that of an app at another host does
     */
    public function __construct(
        string $origin,
        string $ca,
        string $certificate,
        string $key,
        Store $store,
        ?string $displayName = null,
        string $leastUserVerification = 'none',
        ?int $longestVerificationAge = null,
        int $leastDigits = 2,
        bool $allowUnpinned = false,
        bool $acceptCodes = false,
        string $phones = 'any',
        ?string $appOrigin = null,
        array $loginOrigins = [],
    ) {
        $transport = new CurlTransport($origin, $ca, $certificate, $key);
        $policy = new Policy(
            $origin,
            Policy::websiteOf($certificate),
            $displayName,
            $leastUserVerification,
            $longestVerificationAge,
            $leastDigits,
            $allowUnpinned,
            $acceptCodes,
            $phones,
            $appOrigin,
            $loginOrigins,
        );
        $this->setUp($policy, $store, $transport, new World());
    }

    /** A client with another transport and clock, for tests. */
    public static function with(
        Policy $policy,
        Store $store,
        Transport $transport,
        World $world,
    ): self {
        $relay = (new \ReflectionClass(self::class))->newInstanceWithoutConstructor();
        $relay->setUp($policy, $store, $transport, $world);
        return $relay;
    }

    private function setUp(Policy $policy, Store $store, Transport $transport, World $world): void
    {
        $this->policy = $policy;
        $this->store = $store;
        $this->client = new Client($transport, $world);
        $this->enrolments = new Enrolments($policy, $store, $this->client, $world);
        $this->logins = new Logins($policy, $store, $this->client, $world, $this->enrolments);
    }

    // MARK: Enrolment

    /** Registers a user, once. Throws Conflict if the relay knows the user: see `enrolment`. */
    public function register(
        string $username,
        ?string $email = null,
        ?string $phone = null,
        ?string $displayName = null,
        ?string $language = null,
        ?string $expiresAt = null,
    ): Enrolment {
        return $this->enrolments->register($username, [
            'email' => $email,
            'phone' => $phone,
            'display_name' => $displayName,
            'language' => $language,
            'expires_at' => $expiresAt,
        ]);
    }

    /**
     * Another code, for a further phone or after the first has expired (ten minutes).
     *
     * Throws ApprovalRequired once the user has a factor: show its number, `call` POST /auth until
     * its challenge is decided, and call again with the challenge as `$approval`.
     */
    public function enrolment(string $username, ?string $approval = null): Enrolment
    {
        return $this->enrolments->enrolment($username, $approval);
    }

    /**
     * Pins the phones that have read a code of this website, and returns their new ids.
     *
     * It is empty until a phone has read the code. Throws BindingError if the relay reports a key
     * that no phone proved. `wait` calls it too, for a phone that was bound since.
     *
     * @return list<string>
     */
    public function confirm(string $username): array
    {
        return $this->enrolments->confirm($username);
    }

    // MARK: Logins

    /**
     * Opens a login, after the right password. Keep the result in the visitor's session.
     *
     * `$ip`, `$userAgent` and `$acceptLanguage` may stand as the browser sent them: they are
     * cleaned or left out. `$details` are pairs of label and value, which the phone shows and
     * signs. Without a `$number`, the client chooses one of `leastDigits` digits.
     *
     * @param list<array{label: string, value: string}> $details
     * @param string|null       $number       what the visitor enters, if you choose it yourself
     * @param list<string>|null $factors      the factors that may answer
     * @param string|null       $minAssurance low, restricted, substantial or high
     * @param bool              $known        what KnownBrowsers says of this browser
     */
    public function ask(
        string $username,
        ?string $ip = null,
        ?string $userAgent = null,
        ?string $service = null,
        ?string $action = null,
        array $details = [],
        ?string $number = null,
        ?array $factors = null,
        ?string $minAssurance = null,
        bool $known = false,
        ?int $expiresIn = null,
        ?string $acceptLanguage = null,
        ?string $chosenLanguage = null,
    ): Login {
        if ($minAssurance !== null && !in_array($minAssurance, Policy::ASSURANCES, true)) {
            throw new \InvalidArgumentException(
                'minAssurance must be low, restricted, substantial or high'
            );
        }
        $shown = [
            'service' => $service,
            'action' => $action,
            'details' => array_values($details) ?: null,
            'ip' => Texts::address($ip),
            'user_agent' => Texts::browser($userAgent),
        ];
        $further = [
            'factors' => $factors,
            'min_assurance' => $minAssurance,
            'known' => $known ?: null,
            'expires_in' => $expiresIn,
        ];
        return $this->logins->ask($username, $shown, $further, $number, array_filter([
            'accept-language' => Texts::language($acceptLanguage),
            'accept-user-language' => Texts::language($chosenLanguage),
        ]));
    }

    /**
     * Waits for the decision and checks it. Let the user in only if its `approved` is true: the
     * object itself is always true.
     *
     * `$within` is the time to wait in seconds, 0 for none; then the decision may be `open`. An
     * approval is returned once: a second call for the same login throws ReceiptError.
     */
    public function wait(Login $login, ?float $within = null): Decision
    {
        return $this->logins->wait($login, $within);
    }

    /**
     * The relay's own answer, unchecked: for a page that shows how things stand. It lets nobody in.
     *
     * @return array<string, mixed>
     */
    public function state(Login $login, int $hold = 0): array
    {
        return Json::arrays($this->logins->state($login, $hold));
    }

    /**
     * Submits a code that the visitor typed. After a wrong one the decision is `open`.
     *
     * Throws ReceiptError unless the client accepts codes (`acceptCodes`).
     */
    public function enter(Login $login, #[\SensitiveParameter] string $code): Decision
    {
        return $this->logins->enter($login, $code);
    }

    /** Begins a factor now, or sends its code again. */
    public function begin(Login $login, string $factor): void
    {
        $this->logins->begin($login, $factor);
    }

    /** Cancels a login, for example because the visitor left. */
    public function cancel(Login $login): void
    {
        $this->logins->cancel($login);
    }

    /**
     * Checks an answer that came another way: the data of the webhook `login.decided`.
     *
     * @param array<string, mixed> $answer
     */
    public function check(Login $login, array $answer): Decision
    {
        return $this->logins->check($login, (object) $answer);
    }

    // MARK: Users

    /**
     * Whether a phone of the user was ever pinned, by the website's own store.
     *
     * Decide by this whether a user needs the second factor. The relay is not asked: neither a 404
     * nor the unbinding of a phone makes this false, only `forget` and `reset` do.
     *
     * With `acceptCodes` or `allowUnpinned` it is not enough: it is also false for a user who has
     * only codes, or a phone that was never pinned. Keep a mark of your own for such users.
     */
    public function isEnrolled(string $username): bool
    {
        return $this->store->wasPinned($username);
    }

    /**
     * The user's factors, as the relay says. Throws NotFound for an unknown user.
     *
     * @return list<Factor>
     */
    public function factors(string $username): array
    {
        return $this->enrolments->factors($username);
    }

    /**
     * The whole answer of GET /user/{username}.
     *
     * @return array<string, mixed>
     */
    public function user(string $username): array
    {
        return Json::arrays($this->enrolments->user($username));
    }

    /** Unpins and unbinds a phone, for example a lost one. The user stays enrolled. */
    public function unbind(string $username, string $device): void
    {
        $this->enrolments->unbind($username, $device);
    }

    /** Deletes the user, at the relay and in the store. */
    public function forget(string $username): void
    {
        $this->enrolments->forget($username);
    }

    /**
     * Forgets in the store that the user ever had a phone, so that the password alone suffices to
     * bind a first one. For a help desk that has identified the user.
     */
    public function reset(string $username): void
    {
        $this->store->forget($username);
    }

    /**
     * Calls any other route of api.md, with the same retries and errors. The path begins with "/".
     *
     * @param array<string, mixed>|null $body
     * @return array<string, mixed>
     */
    public function call(string $method, string $path, ?array $body = null): array
    {
        if (!str_starts_with($path, '/')) { // it would change the host
            throw new \InvalidArgumentException('the path must begin with "/"');
        }
        $call = new Call(strtoupper($method), $path, $body);
        return Json::arrays($this->client->send($call, 200, 201, 202, 204));
    }
}
