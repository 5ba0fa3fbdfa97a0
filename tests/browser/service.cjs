// `closer serve` on a deployment of its own, and a browser before it.
"use strict";
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");
const { chromium } = require("playwright-core");

const ROOT = path.join(__dirname, "..", "..");
const CLOSER = process.env.CLOSER ?? path.join(ROOT, "target", "debug", "closer");
const SHOTS = process.env.CLOSER_SHOTS ?? path.join(ROOT, "target", "browser", "shots");
const DESK = { width: 1200, height: 900 };
const PHONE = { width: 320, height: 640 };

const freePort = () =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

// One file that is to say `done`, and no grant that would let the worker write it: the user is asked.
const asking = () => {
  const text = fs.readFileSync(path.join(ROOT, "tests", "it", "counting.toml"), "utf8");
  const begin = text.indexOf("[[grant]]");
  const end = text.indexOf("[[declaration]]");
  return (text.slice(0, begin) + text.slice(end))
    .replace("authority_boundary = [\"grant.finish\"]", "")
    .replace("REPEAT_SAFETY", "conditional")
    .replace("SECONDS", "0.2");
};

const certificates = () => fs.readFileSync(path.join(ROOT, "examples", "certificate-renewal", "closer.toml"), "utf8");

const PERSON = "[[http.person]]\nidentity = \"user.owner\"\nrestricts_as = \"issuer.security\"\n";

class Service {
  static async start(text, http = "") {
    const service = new Service();
    service.folder = fs.mkdtempSync(path.join(os.tmpdir(), "closer-browser-"));
    service.port = await freePort();
    const section = `\n[http]\nlisten = "127.0.0.1:${service.port}"\n${http}\n${PERSON}`;
    fs.writeFileSync(path.join(service.folder, "closer.toml"), text + section);
    await service.run();
    return service;
  }

  async run() {
    this.child = spawn(CLOSER, ["--json", "serve", this.folder], { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = await Promise.race([
      new Promise((resolve) => readline.createInterface(this.child.stdout).once("line", (line) => resolve([line]))),
      new Promise((_, reject) => this.child.once("exit", (code) => reject(new Error(`closer serve ended with ${code}`)))),
    ]);
    this.announced = JSON.parse(line);
    this.url = this.announced.url;
  }

  async stop() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    await ended;
    fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

// A browser that is shared by all tests, and contexts that are devices of their own.
let launched;
const browser = () => {
  launched ??= chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  return launched;
};
const close = async () => {
  if (launched) await (await launched).close();
};

const device = async (options = {}) => {
  const context = await (await browser()).newContext({ viewport: DESK, ...options });
  context.setDefaultTimeout(15_000);
  return context;
};

// A page that is signed in by the link of the first start.
const signedIn = async (service, options = {}) => {
  const page = await (await device(options)).newPage();
  await page.goto(service.announced.sign_in);
  await page.getByRole("button", { name: "Sign in on this device" }).click();
  await page.getByRole("heading", { name: "The Bench" }).waitFor();
  return page;
};

// The page of the first packet, once there is one.
const packet = async (page, service) => {
  for (let tries = 0; ; tries += 1) {
    await page.goto(service.url);
    const entry = page.locator("[data-entry]").first();
    if (await entry.count()) {
      await entry.click();
      await page.waitForURL("**/packets/**");
      return page.url();
    }
    if (tries > 100) throw new Error("no packet came onto The Bench");
    await page.waitForTimeout(100);
  }
};

const shot = async (page, name) => {
  fs.mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: path.join(SHOTS, `${name}.png`), fullPage: true });
};

module.exports = { Service, asking, certificates, browser, close, device, signedIn, packet, shot, DESK, PHONE };
