"""The Nexus service "Quotes": an operation that answers at once, one that is a workflow, and one that fails."""

from nexusrpc import Operation, OperationError, OperationErrorState, service
from nexusrpc.handler import StartOperationContext, service_handler, sync_operation
from temporalio import nexus, workflow

from orders import Order, Receipt


@service
class Quotes:
    quote: Operation[Order, Receipt]
    deliver: Operation[Order, Receipt]
    refuse: Operation[Order, Receipt]


@workflow.defn
class Deliver:
    @workflow.run
    async def run(self, order: Order) -> Receipt:
        await workflow.sleep(0.1)
        return Receipt(order, 7.5)


@service_handler(service=Quotes)
class QuotesHandler:
    @sync_operation
    async def quote(self, ctx: StartOperationContext, order: Order) -> Receipt:
        """Notes the tenant of the call."""
        noted = Order(order.item, order.amount, [*order.notes, ctx.headers["tenant"]])
        return Receipt(noted, order.amount * 2.5)

    @nexus.workflow_run_operation
    async def deliver(
        self, ctx: nexus.WorkflowRunOperationContext, order: Order
    ) -> nexus.WorkflowHandle[Receipt]:
        return await ctx.start_workflow(Deliver.run, order, id=f"deliver-{order.item}")

    @sync_operation
    async def refuse(self, ctx: StartOperationContext, order: Order) -> Receipt:
        raise OperationError(f"no {order.item} is left", state=OperationErrorState.FAILED)
