# conversation.sh ORIGIN DIRECTORY TWOEFAY : a website's conversation with the relay, by curl and jq.
set -eu
origin=$1 directory=$2 twoefay=$3

# call METHOD PATH [BODY [FIELD]] : writes the body to `answer`, and prints the status.
call() {
    curl --silent --show-error --http1.1 --cacert "$directory/relay/ca.pem" --cert "$directory/shop.pem" \
        --key "$directory/shop.key" --output "$directory/answer" --write-out '%{http_version} %{http_code}\n' \
        --request "$1" ${3:+--data "$3"} --header 'Content-Type: application/json' --header "${4:-Accept: */*}" "$origin$2" |
        sed -n 's/^1\.1 //p'
}
answer() { jq -r "$1" "$directory/answer"; }
phone() { "$twoefay" phone "$@" --keys "$directory/phone" > /dev/null; }

call POST /register '{"username":"ada"}'
phone enrol "$(answer .activation.uri)"
status=$(call GET /user/ada)
echo "$status $(answer '"\(.state) \(.devices | length)"')"
call POST /login '{"username":"ada","request":"r-1"}'
challenge=$(answer .challenge) number=$(answer .number)
status=$(call POST /auth "{\"challenge\":\"$challenge\"}" 'Prefer: wait=1')
echo "$status $(answer .login)"
phone approve --challenge "$challenge" --number "$number" &
status=$(call POST /auth "{\"challenge\":\"$challenge\"}" 'Prefer: wait=60')
echo "$status $(answer '"\(.login) \(.proof) \(.receipt | split(".") | length - 1)"')"
wait $!
status=$(call GET /webhook/secrets)
echo "$status $(answer '.secrets | length')"
status=$(call GET /user/nobody)
echo "$status $(answer .code)"
call DELETE /user/ada
