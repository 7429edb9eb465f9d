"""Calls workflows of Dacapo, and prints what it sees as one line of JSON.

Arguments: the address of the server, the namespace, and the name of a function of this file.
"""

import asyncio
import dataclasses
import json
import sys
from datetime import timedelta
from typing import Any, Optional

from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)

import tenant
from orders import Order, Receipt, told

CITY = SearchAttributeKey.for_keyword("city")
LAMP = Order("lamp", 2, ["bright", "für Ada"])


async def start(client: Client, workflow: str, *args: Any, **options: Any) -> WorkflowHandle:
    options = {"id": workflow, "task_queue": "default", "execution_timeout": timedelta(seconds=60), **options}
    return await client.start_workflow(workflow, args=args, **options)


async def talk(client: Client) -> Any:
    run = await start(client, "shelf", "lamps", result_type=list[Order])
    await run.signal("add", LAMP)
    found = await run.query("find", "lamp", result_type=Optional[Order])
    missing = await run.query("find", "sofa", result_type=Optional[Order])
    put = await run.execute_update("put", Order("sofa", 1, []), result_type=Receipt)
    rejected = await failure(run.execute_update("put", Order("chair", 0, [])), WorkflowUpdateFailedError)
    failed = await failure(run.execute_update("put", Order("piano", 1, [])), WorkflowUpdateFailedError)
    refused = await failure(run.query("find", ""), WorkflowQueryFailedError)
    await run.signal("end")
    return {
        "found": found,
        "missing": missing,
        "put": put,
        "rejected": rejected,
        "failed": failed,
        "refused": refused,
        "result": await run.result(),
    }


async def talk_at_start(client: Client) -> Any:
    signalled = await start(client, "shelf", "lamps", id="signalled", start_signal="add", start_signal_args=[LAMP])
    updated = WithStartWorkflowOperation(
        "shelf",
        "lamps",
        id="updated",
        task_queue="default",
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        result_type=list[Order],
    )
    put = await client.execute_update_with_start_workflow(
        "put", LAMP, start_workflow_operation=updated, result_type=Receipt
    )
    runs = [signalled, await updated.workflow_handle()]
    for run in runs:
        await run.signal("end")
    return {"put": put, "results": [await run.result() for run in runs]}


async def fail(client: Client) -> Any:
    return {
        "own": await failure((await start(client, "fails", LAMP)).result(), WorkflowFailureError),
        "of an activity": await failure((await start(client, "fails_with_activity")).result(), WorkflowFailureError),
    }


async def send_nothing(client: Client) -> Any:
    run = await start(client, "nothing")
    return {
        "query": await run.query("nothing"),
        "update": await run.execute_update("nothing"),
        "signal": await run.signal("nothing"),
        "result": await run.result(),
        "none": await (await start(client, "maybe", None, id="none")).result(),
        "some": await (await start(client, "maybe", LAMP, id="some", result_type=Optional[Order])).result(),
    }


async def cancel(client: Client) -> Any:
    run = await start(client, "waits")
    await run.query("waits")
    await run.cancel()
    return await failure(run.result(), WorkflowFailureError)


async def label(client: Client) -> Any:
    tenant.tenant.set("ada")
    city = TypedSearchAttributes([SearchAttributePair(CITY, "Lisboa")])
    run = await start(client, "label", memo={"customer": {"name": "Ada"}}, search_attributes=city)
    seen = await run.result()
    described = await run.describe()
    return {
        "seen": seen,
        "customer": await described.memo_value("customer"),
        "city": described.typed_search_attributes.get(CITY),
    }


async def overhear(client: Client) -> Any:
    run = await start(client, "overhear")
    tenant.tenant.set("ada")
    seen = {"query": await run.query("ask"), "update": await run.execute_update("change")}
    tenant.tenant.set("grace")
    await run.signal("tell")
    return seen | {"signal": await run.result()}


async def unlabel(client: Client) -> Any:
    city = TypedSearchAttributes([SearchAttributePair(CITY, "Lisboa")])
    run = await start(client, "unlabel", memo={"customer": "Ada"}, search_attributes=city)
    await run.result()
    described = await run.describe()
    return {"memo": dict(await described.memo()), "city": described.typed_search_attributes.get(CITY)}


async def failure(call: Any, expected: type[Exception]) -> dict[str, Any]:
    try:
        await call
    except expected as error:
        return told(error)
    raise AssertionError(f"{expected.__name__} was expected")


async def main(address: str, namespace: str, case: str) -> None:
    client = await Client.connect(address, namespace=namespace, interceptors=[tenant.OfClient()])
    print(json.dumps(await globals()[case](client), default=dataclasses.asdict), flush=True)


asyncio.run(main(*sys.argv[1:]))
