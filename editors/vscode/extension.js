// The client of `kingpost lsp`, and the kernels that its code lenses show.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

// Kernels after steps are documents of this scheme; the query holds the arguments of a lens.
const SCHEME = "kingpost-kernel";

let client;

async function start() {
  const command = vscode.workspace.getConfiguration("kingpost").get("command");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("kingpost", "Kingpost", server, {
    documentSelector: [{ language: "kingpost", scheme: "file" }, { language: "kingpost", scheme: "untitled" }],
  });
  try {
    await client.start();
  } catch (error) {
    const help = "Install it by `pip install kingpost`, or set `kingpost.command` to its path.";
    vscode.window.showErrorMessage(`\`${command} lsp\` does not start: ${error.message}. ${help}`);
  }
}

async function stop() {
  if (client && client.isRunning()) {
    await client.stop();
  }
  client = undefined;
}

function kernelUri(argument, which) {
  const path = `${which} step ${argument.step + 1}.kingpost`;
  return vscode.Uri.from({ scheme: SCHEME, path, query: JSON.stringify({ ...argument, which }) });
}

const kernels = {
  async provideTextDocumentContent(uri) {
    const { which, ...argument } = JSON.parse(uri.query);
    const found = await client.sendRequest("workspace/executeCommand", {
      command: "kingpost.kernelAfter",
      arguments: [argument],
    });
    return found[which];
  },
};

async function showKernel(argument) {
  const title = `Step ${argument.step + 1}: the kernel before and after`;
  const [before, after] = ["before", "after"].map((which) => kernelUri(argument, which));
  await vscode.commands.executeCommand("vscode.diff", before, after, title, { preview: true });
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, kernels),
    vscode.commands.registerCommand("kingpost.showKernel", showKernel),
    vscode.commands.registerCommand("kingpost.restart", () => stop().then(start)),
  );
  await start();
};

exports.deactivate = stop;
