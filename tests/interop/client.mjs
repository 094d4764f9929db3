// One client of a TypeScript SDK: reads on stdin whom to talk to and what to call, as JSON, and
// prints what came back, as JSON.  The SDK validates structured answers against their schemas.
//
//   {"sdk": "1" | "2", "server": {"url"} | {"command", "args", "cwd"}, "requests": [{method, params}]}
//
// A method is one of the SDK's client, callTool and so on, or of OWN below.  ${some_tool.chain_id} in a string stands
// for that field of what this tool answered last.

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

const UPDATE_SECONDS_MAX = 20;
const OWN = {
    // Asks to be told of a resource's updates, as the protocol has it.
    async watch({ uri }) {
        if (!client.listen) {
            return await client.subscribeResource({ uri });
        }
        return (await client.listen({ resourceSubscriptions: [uri] })).honoredFilter;
    },
    // Waits until it is told of one.
    async updated({ uri }) {
        const late = AbortSignal.timeout(1000 * UPDATE_SECONDS_MAX);
        const never = new Promise((_, reject) => late.addEventListener('abort', () => reject(late.reason)));
        await Promise.race([update(uri).promise, never]);
        return {};
    }
};

const asked = JSON.parse(await text(process.stdin));
const { Stdio, Http, client: newClient } = SDKS[asked.sdk];
const { url, ...program } = asked.server;
const client = newClient();
const transport = url ? new Http(new URL(url)) : new Stdio(program);
const updates = {};
client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method === 'notifications/resources/updated') {
        update(params.uri).resolve();
    }
};
const protocol = await connect();
const server = client.getServerVersion();

const { tools } = await client.listTools();
const answered = {};
const answers = [];
for (const request of asked.requests) {
    answers.push(await answer(request));
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

async function answer({ method, params }) {
    try {
        const ask = OWN[method] ?? client[method].bind(client);
        const given = await ask(filled(params));
        answered[params.name] = given.structuredContent;
        return given;
    } catch (error) {
        return { thrown: String(error) };
    }
}

function filled(params) {
    const put = (_, name, field) => answered[name][field];
    return JSON.parse(JSON.stringify(params).replace(/\$\{(\w+)\.(\w+)\}/g, put));
}

function update(uri) {
    return (updates[uri] ??= Promise.withResolvers());
}
