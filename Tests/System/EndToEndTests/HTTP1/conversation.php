<?php

// conversation.php ORIGIN DIRECTORY TWOEFAY curl|streams : a website's conversation with the relay.
[, $origin, $directory, $twoefay, $by] = $argv;

function by_curl(string $method, string $path, ?array $body, array $fields): array
{
    global $origin, $directory;
    static $curl = null; // kept: the connection is used again
    $curl ??= curl_init();
    curl_reset($curl);
    curl_setopt_array($curl, [
        CURLOPT_URL => $origin . $path, CURLOPT_CUSTOMREQUEST => $method, CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1, CURLOPT_HTTPHEADER => $fields,
        CURLOPT_CAINFO => "$directory/relay/ca.pem", CURLOPT_SSLCERT => "$directory/shop.pem",
        CURLOPT_SSLKEY => "$directory/shop.key",
    ]);
    if ($body !== null) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, json_encode($body));
    }
    $text = curl_exec($curl);
    $version = curl_getinfo($curl, CURLINFO_HTTP_VERSION) === CURL_HTTP_VERSION_1_1 ? 'HTTP/1.1' : 'another';
    return [$version, curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $text];
}

function by_streams(string $method, string $path, ?array $body, array $fields): array
{
    global $origin, $directory;
    $context = stream_context_create([
        'http' => [
            'method' => $method, 'header' => $fields, 'ignore_errors' => true,
            'content' => $body === null ? '' : json_encode($body),
        ],
        'ssl' => [
            'cafile' => "$directory/relay/ca.pem", 'local_cert' => "$directory/shop.pem",
            'local_pk' => "$directory/shop.key",
        ],
    ]);
    $text = file_get_contents($origin . $path, false, $context);
    [$version, $status] = explode(' ', $http_response_header[0]);
    return [$version, (int) $status, $text];
}

function call(string $method, string $path, ?array $body = null, string ...$fields): array
{
    global $by;
    $fields = [...$fields, ...($body === null ? [] : ['Content-Type: application/json'])];
    [$version, $status, $text] = "by_$by"($method, $path, $body, $fields);
    if ($version !== 'HTTP/1.1') {
        exit("$version\n");
    }
    return [$status, json_decode($text, true) ?? []];
}

function phone(string ...$words)
{
    global $directory, $twoefay;
    $pipes = [];
    return proc_open([$twoefay, 'phone', ...$words, '--keys', "$directory/phone"], [1 => ['file', '/dev/null', 'w']], $pipes);
}

[$status, $user] = call('POST', '/register', ['username' => 'ada']);
echo "$status\n";
proc_close(phone('enrol', $user['activation']['uri']));
[$status, $user] = call('GET', '/user/ada');
echo "$status {$user['state']} ", count($user['devices']), "\n";
[$status, $login] = call('POST', '/login', ['username' => 'ada', 'request' => 'r-1']);
echo "$status\n";
$challenge = ['challenge' => $login['challenge']];
[$status, $answer] = call('POST', '/auth', $challenge, 'Prefer: wait=1');
echo "$status {$answer['login']}\n";
$approval = phone('approve', '--challenge', $login['challenge'], '--number', $login['number']);
[$status, $answer] = call('POST', '/auth', $challenge, 'Prefer: wait=60');
echo "$status {$answer['login']} {$answer['proof']} ", substr_count($answer['receipt'], '.'), "\n";
proc_close($approval);
[$status, $answer] = call('GET', '/webhook/secrets');
echo "$status ", count($answer['secrets']), "\n";
[$status, $answer] = call('GET', '/user/nobody');
echo "$status {$answer['code']}\n";
echo call('DELETE', '/user/ada')[0], "\n";
