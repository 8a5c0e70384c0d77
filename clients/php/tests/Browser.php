<?php

declare(strict_types=1);

namespace Twoefay\Tests;

/** The requests of a browser, with its cookies. Redirects are told and not followed. */
final class Browser
{
    /** @var array<string, string> */
    public array $cookies = [];

    public function __construct(private readonly string $origin)
    {
    }

    public function get(string $path): Received
    {
        return $this->all([$this->request($path, null)])[0];
    }

    /** @param array<string, mixed> $form */
    public function post(string $path, array $form): Received
    {
        return $this->all([$this->request($path, $form)])[0];
    }

    /**
     * Posts a form several times at once, as two clicks do. The cookies stay as they are.
     *
     * @param array<string, mixed> $form
     * @return list<Received>
     */
    public function postAtOnce(int $count, string $path, array $form): array
    {
        $kept = $this->cookies;
        $requests = [];
        for ($i = 0; $i < $count; $i++) {
            $requests[] = $this->request($path, $form);
        }
        $answers = $this->all($requests);
        $this->cookies = $kept;
        return $answers;
    }

    /** A browser that got only this answer. */
    public function after(Received $answer): self
    {
        $browser = clone $this;
        $browser->keep($answer);
        return $browser;
    }

    /** @param array<string, mixed>|null $form */
    private function request(string $path, ?array $form): \CurlHandle
    {
        $curl = curl_init($this->origin . $path);
        $cookies = [];
        foreach ($this->cookies as $name => $value) {
            $cookies[] = "$name=$value";
        }
        curl_setopt_array($curl, [
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_HEADER => true,
            CURLOPT_PROXY => '',
            CURLOPT_USERAGENT => "Evil\u{200b} browser/1.0",
            CURLOPT_COOKIE => implode('; ', $cookies),
        ]);
        if ($form !== null) {
            curl_setopt($curl, CURLOPT_POSTFIELDS, http_build_query($form));
        }
        return $curl;
    }

    /**
     * @param list<\CurlHandle> $requests
     * @return list<Received>
     */
    private function all(array $requests): array
    {
        $multi = curl_multi_init();
        foreach ($requests as $curl) {
            curl_multi_add_handle($multi, $curl);
        }
        do {
            curl_multi_exec($multi, $running);
            curl_multi_select($multi);
        } while ($running > 0);
        $answers = [];
        foreach ($requests as $curl) {
            $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
            $size = curl_getinfo($curl, CURLINFO_HEADER_SIZE);
            $text = (string) curl_multi_getcontent($curl);
            $answers[] = $answer = new Received($status, substr($text, 0, $size), substr($text, $size));
            $this->keep($answer);
        }
        return $answers;
    }

    private function keep(Received $answer): void
    {
        foreach ($answer->all('set-cookie') as $field) {
            [$name, $value] = explode('=', explode(';', $field, 2)[0], 2);
            $this->cookies[$name] = $value;
        }
    }
}
