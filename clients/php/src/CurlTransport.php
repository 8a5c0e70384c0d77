<?php

declare(strict_types=1);

namespace Twoefay;

/**
 * HTTP by ext-curl: HTTP/2 or HTTP/1.1 on TLS, as the relay picks, with the website's certificate.
 *
 * A connection is kept for the next call, but not where PHP can fork: a child that ends closes the
 * TLS connections that it has inherited, under its parent. A relay must not fill the memory of a
 * website, so the size and the time of an answer are limited.
 */
final class CurlTransport implements Transport
{
    private const SECONDS = 15;
    private const KEPT_FIELDS = ['content-type', 'retry-after', 'request-id'];

    private ?\CurlHandle $curl = null;

    public function __construct(
        private readonly string $origin,
        private readonly string $authority,
        private readonly string $certificate,
        private readonly string $key,
    ) {
        foreach ([$authority, $certificate, $key] as $file) {
            is_readable($file) ?: throw new \InvalidArgumentException("$file cannot be read");
        }
    }

    public function send(Call $call): Answer
    {
        $curl = $this->handle();
        $headers = [];
        $body = '';
        $areSet = curl_setopt_array($curl, $this->options($call) + [
            CURLOPT_HEADERFUNCTION => static function ($_, string $line) use (&$headers): int {
                self::note($headers, $line);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($_, string $part) use (&$body): int {
                $body .= $part;
                return strlen($body) > Json::MOST_BYTES ? 0 : strlen($part); // 0 ends the transfer
            },
        ]);
        if (!$areSet) { // the rest is not set either, and the relay would be asked without it
            throw new \RuntimeException('libcurl lacks TLS or another option');
        }
        if (curl_exec($curl) === false) {
            throw new Unreachable('the relay gave no answer: ' . Texts::oneLine(curl_error($curl)));
        }
        return new Answer(curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $headers, $body);
    }

    /** @return array<int, mixed> */
    private function options(Call $call): array
    {
        // An answer is at most some kilobytes: without compression, a small one cannot become
        // large.
        $fields = $call->headers + ['accept-encoding' => 'identity', 'user-agent' => 'twoefay-php'];
        $options = [
            CURLOPT_URL => $this->origin . $call->path,
            CURLOPT_CUSTOMREQUEST => $call->method,
            CURLOPT_TIMEOUT => $call->hold + self::SECONDS,
            CURLOPT_CONNECTTIMEOUT => 5,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HTTP_VERSION => self::version(),
            CURLOPT_FORBID_REUSE => function_exists('pcntl_fork'),
            // libcurl repeats a request itself if a kept connection ends without an answer.
            CURLOPT_FRESH_CONNECT => $call->method === 'PATCH',
            CURLOPT_PROTOCOLS => CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_PATH_AS_IS => true,
            CURLOPT_PROXY => '', // none, whatever the environment says
            CURLOPT_CAINFO => $this->authority,
            CURLOPT_CAPATH => __DIR__, // no certificates are here: the default is the system's
            CURLOPT_SSL_VERIFYPEER => true,
            CURLOPT_SSL_VERIFYHOST => 2,
            CURLOPT_SSLVERSION => CURL_SSLVERSION_TLSv1_2,
            CURLOPT_SSLCERT => $this->certificate,
            CURLOPT_SSLKEY => $this->key,
        ];
        $lines = ['expect:']; // curl would wait for "100 Continue" before a larger body
        if ($call->body !== null) {
            $fields['content-type'] = 'application/json';
            $options[CURLOPT_POSTFIELDS] = Json::write($call->body);
        } elseif (!in_array($call->method, ['GET', 'DELETE'], true)) {
            $lines[] = 'content-type:'; // an empty body has none, but a length
            $options[CURLOPT_POSTFIELDS] = '';
        }
        foreach ($fields as $name => $value) {
            $lines[] = "$name: $value";
        }
        return $options + [CURLOPT_HTTPHEADER => $lines];
    }

    /** A libcurl without HTTP/2 refuses to be asked for it. */
    private static function version(): int
    {
        $hasHttp2 = (curl_version()['features'] & CURL_VERSION_HTTP2) !== 0;
        return $hasHttp2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
    }

    /** @param array<string, string> $headers */
    private static function note(array &$headers, string $line): void
    {
        if (str_starts_with($line, 'HTTP/')) {
            $headers = []; // the fields of an interim answer are none of the answer
        }
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $name = strtolower($name);
        if (in_array($name, self::KEPT_FIELDS, true)) {
            $value = trim($value);
            $headers[$name] = isset($headers[$name]) ? "$headers[$name], $value" : $value;
        }
    }

    private function handle(): \CurlHandle
    {
        $this->curl ??= curl_init();
        curl_reset($this->curl);
        return $this->curl;
    }
}
