"""Serves the task queue "python".

Arguments: the address of the server, the namespace, and "encode-failures" for failures whose text is an encoded value.
"""

import asyncio
import dataclasses
import sys
from datetime import timedelta
from typing import Any, Optional

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

import tenant
from orders import Order, Receipt, told
from quotes import Deliver, QuotesHandler

CITY = SearchAttributeKey.for_keyword("city")
OF_DACAPO: dict[str, Any] = {
    "task_queue": "default",
    "start_to_close_timeout": timedelta(seconds=30),
    "retry_policy": RetryPolicy(initial_interval=timedelta(milliseconds=1), maximum_attempts=3),
}


@activity.defn
async def price(order: Order, each: float) -> Receipt:
    return Receipt(order, order.amount * each)


@activity.defn
async def refuse(order: Order) -> None:
    raise ApplicationError("the shelf is empty", order, 7, type="OutOfStock", non_retryable=True)


@activity.defn
async def give_back(value: Optional[Order]) -> Optional[Order]:
    return value


@activity.defn
async def name_tenant() -> Optional[str]:
    return tenant.tenant.get()


@workflow.defn
class Buy:
    """Has Dacapo charge for an order."""

    @workflow.run
    async def run(self, order: Order) -> Receipt:
        return await workflow.execute_activity("charge", args=[order, 2.5], result_type=Receipt, **OF_DACAPO)


@workflow.defn
class BuyInVain:
    """Returns the failure of one activity of Dacapo, and the result of another that is sent None."""

    @workflow.run
    async def run(self, order: Order) -> dict[str, Any]:
        nothing = await workflow.execute_activity("forget", None, **OF_DACAPO)
        try:
            await workflow.execute_activity("decline", order, **OF_DACAPO)
        except ActivityError as error:
            return {"failure": told(error), "nothing": nothing}
        raise ApplicationError("the activity was expected to fail")


@workflow.defn
class Tally:
    """Keeps what it is sent until it is told to end."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.ended = False

    @workflow.run
    async def run(self, each: float) -> list[Receipt]:
        await workflow.wait_condition(lambda: self.ended)
        limit = timedelta(seconds=30)
        return [
            await workflow.execute_activity(price, args=[order, each], start_to_close_timeout=limit)
            for order in self.orders
        ]

    @workflow.signal
    def add(self, order: Order) -> None:
        self.orders.append(order)

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.query
    def count(self) -> int:
        return len(self.orders)

    @workflow.query
    def find(self, item: str) -> Optional[Order]:
        return next((order for order in self.orders if order.item == item), None)

    @workflow.update
    async def put(self, order: Order) -> int:
        self.orders.append(order)
        return len(self.orders)

    @put.validator
    def check(self, order: Order) -> None:
        if order.amount <= 0:
            raise ApplicationError("nothing to put", order.amount, type="Empty")

    @workflow.update
    async def drop_last(self) -> None:
        self.orders.pop()


@workflow.defn
class Fail:
    @workflow.run
    async def run(self, order: Order) -> None:
        raise ApplicationError("the shop is closed", order, type="Closed", non_retryable=True)


@workflow.defn
class Label:
    """Returns what its start was labelled with, and labels the run anew."""

    @workflow.run
    async def run(self) -> dict[str, Any]:
        seen = {
            "tenant": tenant.tenant.get(),
            "customer": workflow.memo_value("customer"),
            "city": workflow.info().typed_search_attributes.get(CITY),
            "tenant of activity": await workflow.execute_activity("tenant_of", **OF_DACAPO),
        }
        workflow.upsert_memo({"customer": {"name": "Grace"}})
        workflow.upsert_search_attributes([CITY.value_set("Porto")])
        return seen


@workflow.defn
class Overhear:
    """Keeps the tenants of a signal and of an update."""

    def __init__(self) -> None:
        self.tenants: list[Optional[str]] = []

    @workflow.run
    async def run(self) -> list[Optional[str]]:
        await workflow.wait_condition(lambda: len(self.tenants) == 2)
        return self.tenants

    @workflow.signal
    def tell(self) -> None:
        self.tenants.append(tenant.tenant.get())

    @workflow.update
    async def change(self) -> None:
        self.tenants.append(tenant.tenant.get())


@workflow.defn
class Unlabel:
    """Removes the labels of its start."""

    @workflow.run
    async def run(self) -> None:
        workflow.upsert_memo({"customer": None})
        workflow.upsert_search_attributes([CITY.value_unset()])


@workflow.defn
class Parent:
    """Returns what a child of Dacapo kept, and the failure of another child."""

    @workflow.run
    async def run(self, order: Order) -> dict[str, Any]:
        shelf = await workflow.start_child_workflow("shelf", "lamps", task_queue="default", result_type=list[Order])
        await shelf.signal("add", order)
        await shelf.signal("end")
        try:
            await workflow.execute_child_workflow("fails", order, task_queue="default")
        except ChildWorkflowError as error:
            return {"kept": await shelf, "failure": told(error)}
        raise ApplicationError("the child was expected to fail")


async def main(address: str, namespace: str, option: Optional[str] = None) -> None:
    converter = DataConverter.default
    if option == "encode-failures":
        encoding = DefaultFailureConverterWithEncodedAttributes
        converter = dataclasses.replace(converter, failure_converter_class=encoding)
    worker = Worker(
        await Client.connect(address, namespace=namespace, data_converter=converter),
        task_queue="python",
        workflows=[Buy, BuyInVain, Tally, Fail, Label, Overhear, Unlabel, Parent, Deliver],
        activities=[price, refuse, give_back, name_tenant],
        nexus_service_handlers=[QuotesHandler()],
        interceptors=[tenant.OfWorker()],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)  # It is closed when the test ends.


asyncio.run(main(*sys.argv[1:]))
