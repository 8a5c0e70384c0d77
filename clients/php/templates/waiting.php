<?php

declare(strict_types=1);

/*
 * The page that waits for the phone, without any other resource. $page has: `number` (null without
 * a phone), `token`, `message`, `ended`, `nonce`, `stateUrl` and `codes`.
 *
 * @var array<string, mixed> $page
 */

$h = static fn(string $text): string => htmlspecialchars($text, ENT_QUOTES, 'UTF-8');
?>
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Confirm your login</title>
<?php if (!$page['ended']) { ?>
<noscript><meta http-equiv="refresh" content="5"></noscript>
<?php } ?>
<style nonce="<?= $h($page['nonce']) ?>">
body { font: 1.1rem/1.5 system-ui, sans-serif; }
main { max-width: 26rem; margin: 4rem auto; padding: 0 1rem; }
.number { font-size: 4rem; font-weight: 700; letter-spacing: .1em; margin: 1rem 0; }
input, button { font: inherit; padding: .5rem 1rem; }
</style>
</head>
<body>
<main>
<h1>Confirm your login</h1>
<?php if ($page['message'] !== '') { ?>
<p role="alert"><?= $h($page['message']) ?></p>
<?php } ?>
<?php if (!$page['ended']) { ?>
<?php if ($page['number'] !== null) { ?>
<p>Enter this number on your phone:</p><p class="number"><?= $h($page['number']) ?></p>
<?php } else { ?>
<p>Answer on your phone.</p>
<?php } ?>
<form method="post" id="finish" data-state="<?= $h($page['stateUrl']) ?>">
<input type="hidden" name="form_token" value="<?= $h($page['token']) ?>">
<?php if ($page['codes']) { ?>
<p><label>Or enter a code: <input name="code" autocomplete="one-time-code"></label></p>
<?php } ?>
<button>Continue</button>
</form>
<script nonce="<?= $h($page['nonce']) ?>">
(async () => {
  const form = document.getElementById("finish");
  for (;;) {
    await new Promise((go) => setTimeout(go, 1500));
    try {
      const answer = await fetch(form.dataset.state, { cache: "no-store" });
      if ((await answer.json()).ended) return form.submit();
    } catch { /* the next round asks again */ }
  }
})();
</script>
<?php } ?>
</main>
</body>
</html>
