// One client of a TypeScript SDK: reads on stdin whom to talk to and what to call, as JSON, and
// prints what came back, as JSON.  The SDK validates structured answers against their schemas.
//
//   {"sdk": "1" | "2", "server": {"url"} | {"command", "args", "cwd"}, "calls": [{name, arguments}]}
//
// An argument {"$of": ["some_tool", "chain_id"]} stands for that field of the first answer of a tool.

import { text } from 'node:stream/consumers';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

const WHO = { name: 'interop', version: '1' };
const SDKS = {
    1: { Stdio: Stdio1, Http: Http1, client: () => new Client1(WHO) },
    // Asks which protocol the server speaks, and takes the newest.
    2: {
        Stdio: Stdio2,
        Http: Http2,
        client: () => new Client2(WHO, { versionNegotiation: { mode: 'auto' } })
    }
};

const asked = JSON.parse(await text(process.stdin));
const { Stdio, Http, client: newClient } = SDKS[asked.sdk];
const { url, ...program } = asked.server;
const client = newClient();
const transport = url ? new Http(new URL(url)) : new Stdio(program);
const protocol = await connect();
const server = client.getServerVersion();

const { tools } = await client.listTools();
const answers = [];
for (const { name, arguments: given } of asked.calls) {
    const filled = Object.entries(given).map(([key, value]) => [key, fill(value)]);
    answers.push(await call(name, Object.fromEntries(filled)));
}
await client.close();
console.log(JSON.stringify({ protocol, server, tools, answers }));

// The protocol that was agreed on, which the first SDK tells nobody but its transport.
async function connect() {
    if (client.getNegotiatedProtocolVersion) {
        await client.connect(transport);
        return client.getNegotiatedProtocolVersion();
    }
    let agreed;
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        agreed = version;
        set?.(version);
    };
    await client.connect(transport);
    return agreed;
}

function fill(value) {
    const [name, field] = value?.$of ?? [];
    return name ? answers[asked.calls.findIndex(call => call.name === name)].structuredContent[field] : value;
}

async function call(name, given) {
    try {
        return await client.callTool({ name, arguments: given });
    } catch (error) {
        return { thrown: String(error) };
    }
}
