// The Bench as people use it, in real Chromium. Every test has a deployment, a service and devices of its own.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const { after, test } = require("node:test");
const { Service, asking, certificates, close, device, signedIn, packet, shot, DESK, PHONE } = require("./service.cjs");

after(close);

const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

// What axe finds against WCAG 2.2 AA.
const findings = async (page) => {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" | ")}`);
};

const served = async (run, text = asking(), http = "") => {
  const service = await Service.start(text, http);
  try {
    await run(service);
  } finally {
    await service.stop();
  }
};

const choose = async (page, name) => {
  await page.getByRole("radio", { name }).check();
  await page.getByRole("button", { name: "Send the chosen answer" }).click();
};

const fate = async (page, service, text) => {
  for (let tries = 0; ; tries += 1) {
    await page.goto(`${service.url}/decisions`);
    if ((await page.locator(".history").textContent().catch(() => "")).includes(text)) return;
    if (tries > 100) assert.fail(`${text} is not under Decisions: ${await page.locator("main").textContent()}`);
    await page.waitForTimeout(100);
  }
};

test("a second device signs in by a code and lands on the packet it came for", () =>
  served(async (service) => {
    const first = await signedIn(service);
    const wanted = await packet(first, service);
    await first.goto(`${service.url}/devices`);
    await first.getByRole("button", { name: "Show a code for another device" }).click();
    const code = await first.locator(".code").textContent();
    const second = await (await device({ viewport: PHONE, hasTouch: true })).newPage();
    await second.goto(wanted);
    await second.getByLabel("Code").fill(code.trim().toLowerCase());
    await second.getByRole("button", { name: "Sign in on this device" }).click();
    await second.waitForURL(wanted);
    await first.goto(`${service.url}/devices`);
    await first.getByRole("button", { name: "Sign it out" }).click();
    await second.reload();
    await second.waitForURL("**/signin**");
  }));

for (const [name, told] of [
  [/Allow exactly this/, "and was read back"],
  [/Do not allow it/, "nothing is permitted by it"],
  [/Find out more first/, "taken up by work"],
]) {
  test(`the answer ${name} is recorded and its fate told`, () =>
    served(async (service) => {
      const page = await signedIn(service);
      await packet(page, service);
      await choose(page, name);
      await page.getByText("This was answered.").waitFor();
      await fate(page, service, told);
    }));
}

test("an answer to a packet that was answered elsewhere is told, with nothing chosen and the alert in focus", () =>
  served(async (service) => {
    const page = await signedIn(service);
    const url = await packet(page, service);
    const other = await page.context().newPage();
    await other.goto(url);
    await choose(other, /Find out more first/);
    await other.getByText("This was answered.").waitFor();
    await choose(page, /Allow exactly this/);
    const alert = page.getByRole("alert");
    await alert.getByText("Nothing was recorded.").waitFor();
    assert.equal(await page.getByRole("radio", { checked: true }).count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.id), "problem");
    await page.goto(`${service.url}/decisions`);
    assert.equal(await page.getByText("investigate", { exact: true }).count(), 1);
    assert.equal(await page.getByText("allow", { exact: true }).count(), 0);
  }));

test("what was allowed is taken back", () =>
  served(
    async (service) => {
      const page = await signedIn(service);
      await packet(page, service);
      await choose(page, /Allow exactly this/);
      await fate(page, service, "What was sent already is not undone.");
      await page.getByRole("button", { name: "Take it back" }).first().click();
      await page.waitForURL("**/decisions");
      await page.getByText("refuse", { exact: true }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Take it back" }).count(), 0);
    },
    asking().replace("echo run >> runs;", "echo run >> runs; exit 1;"),
  ));

test("two taps on a phone stop an operation", () =>
  served(async (service) => {
    const page = await signedIn(service, { viewport: PHONE, hasTouch: true });
    await page.getByRole("link", { name: "Stop now" }).tap();
    await page.getByRole("button", { name: "Stop `file.finish`", exact: true }).tap();
    await page.getByRole("status").getByText("Restricted.").waitFor();
    await page.getByRole("heading", { name: "`file.finish`" }).waitFor();
  }));

test("everything is done with the keyboard, and no key sends an answer", () =>
  served(async (service) => {
    const page = await signedIn(service);
    await packet(page, service);
    await page.keyboard.press("g");
    await page.keyboard.press("b");
    await page.getByRole("heading", { name: "The Bench" }).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/packets/**");
    await page.keyboard.press("e");
    assert.equal(await page.evaluate(() => document.activeElement.id), "evidence");
    await page.keyboard.press("2");
    assert.equal(await page.getByRole("radio", { name: /Do not allow it/ }).isChecked(), true);
    assert.match(page.url(), /packets/, "choosing sends nothing");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("1");
    assert.equal(await page.getByRole("radio", { name: /Do not allow it/ }).isChecked(), true, "off in a dialog");
    await page.getByLabel("Keys are on").uncheck();
    await page.getByRole("button", { name: "Close" }).click();
    await page.keyboard.press("1");
    assert.equal(await page.getByRole("radio", { name: /Do not allow it/ }).isChecked(), true, "off by their switch");
    await page.getByRole("radio", { name: /Do not allow it/ }).focus();
    for (let tabs = 0; tabs < 5; tabs += 1) {
      await page.keyboard.press("Tab");
      if ((await page.evaluate(() => document.activeElement.textContent)) === "Send the chosen answer") break;
    }
    await page.keyboard.press("Enter");
    await page.getByText("This was answered.").waitFor();
  }));

test("everything works without JavaScript", () =>
  served(async (service) => {
    const page = await signedIn(service, { javaScriptEnabled: false });
    await packet(page, service);
    await choose(page, /Allow exactly this/);
    await page.getByText("This was answered.").waitFor();
    await fate(page, service, "and was read back");
    await page.goto(`${service.url}/stop`);
    await page.getByRole("button", { name: "Stop everything" }).click();
    await page.getByText("Restricted.").waitFor();
  }));

test("a change is told without touching what is being written", () =>
  served(async (service) => {
    const page = await signedIn(service);
    await packet(page, service);
    await page.getByRole("radio", { name: /Find out more first/ }).check();
    await page.waitForTimeout(800);
    const other = await page.context().newPage();
    await other.goto(`${service.url}/stop`);
    await other.getByRole("button", { name: "Stop `file.finish`", exact: true }).click();
    await other.getByText("Restricted.").waitFor();
    await page.getByText("Something changed.").waitFor();
    assert.equal(await page.getByRole("radio", { name: /Find out more first/ }).isChecked(), true);
  }));

test("no script, style or picture comes from anywhere else, and the console stays empty", () =>
  served(async (service) => {
    const context = await device();
    const page = await context.newPage();
    const heard = [];
    const asked = new Set();
    page.on("console", (message) => heard.push(message.text()));
    page.on("pageerror", (error) => heard.push(String(error)));
    page.on("request", (request) => asked.add(new URL(request.url()).origin));
    await page.goto(service.announced.sign_in);
    await page.getByRole("button", { name: "Sign in on this device" }).click();
    await packet(page, service);
    await page.goto(`${service.url}/obligations/obligation.count?trace=true`);
    assert.deepEqual(heard, []);
    assert.deepEqual([...asked], [service.url]);
  }));

// Every page, at both sizes and in both colour schemes: nothing overflows, targets are large enough, axe finds nothing.
test("every page fits, is large enough to hit and passes axe", () =>
  served(async (service) => {
    const page = await signedIn(service);
    const url = await packet(page, service);
    await page.goto(`${service.url}/search?words=ev-certificate`);
    const evidence = (await page.locator("[data-entry]").first().getAttribute("href")).split("/").pop();
    const pages = {
      "sign-in": `${service.url}/signin`,
      bench: service.url,
      packet: url,
      work: `${service.url}/work`,
      obligations: `${service.url}/obligations?all=true`,
      obligation: `${service.url}/obligations/obligation.web?trace=true`,
      "obligation-waiting": `${service.url}/obligations/obligation.mail`,
      restrictions: `${service.url}/restrictions`,
      stop: `${service.url}/stop`,
      search: `${service.url}/search?words=certificate`,
      evidence: `${service.url}/evidence/${evidence}`,
      devices: `${service.url}/devices`,
    };
    const look = async (name, address) => {
      for (const [size, viewport] of Object.entries({ desk: DESK, phone: PHONE })) {
        for (const colorScheme of ["light", "dark"]) {
          await page.setViewportSize(viewport);
          await page.emulateMedia({ colorScheme });
          await page.goto(address);
          const where = `${name} ${size} ${colorScheme}`;
          const wide = await page.evaluate(() => document.documentElement.scrollWidth);
          assert.ok(wide <= viewport.width, `${where} is ${wide} wide`);
          const small = await page.evaluate(() =>
            [...document.querySelectorAll("main button, header a, main input, .option label")]
              .filter((element) => element.offsetParent !== null)
              .map((element) => [element.textContent.trim().slice(0, 30) || element.name, element.getBoundingClientRect()])
              .filter(([, box]) => box.height < 24 || box.width < 24)
              .map(([text]) => text),
          );
          assert.deepEqual(small, [], `${where}: too small to hit`);
          assert.deepEqual(await findings(page), [], where);
          if (colorScheme === "light" || name === "packet") await shot(page, `${name}-${size}-${colorScheme}`);
        }
      }
    };
    for (const [name, address] of Object.entries(pages)) await look(name, address);
    const answers = await page.evaluate(async (address) => {
      const text = await (await fetch(address)).text();
      return new DOMParser().parseFromString(text, "text/html").querySelectorAll(".option").length;
    }, url);
    assert.equal(answers, 3);
    await page.goto(url);
    const heights = await page.locator(".option, button.main").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().height));
    assert.ok(heights.every((height) => height >= 44), `answers are ${heights} high`);
    await choose(page, /Allow exactly this/);
    await fate(page, service, "and was read back");
    await look("decisions", `${service.url}/decisions`);
    await look("packet-answered", url);
    await page.goto(`${service.url}/stop`);
    await page.getByRole("button", { name: /Stop/ }).first().click();
    await look("restricted", `${service.url}/restrictions?made=now`);
    await page.goto(`${service.url}/devices`);
    await page.getByRole("button", { name: "Show a code for another device" }).click();
    await shot(page, "code-desk-light");
  }, certificates()));
