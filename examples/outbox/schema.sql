-- The order service's: an order and its event are written in one transaction.
CREATE TABLE IF NOT EXISTS orders (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    item      text NOT NULL,
    placed_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS outbox (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL DEFAULT gen_random_uuid(),    -- born with the event, so that all its copies have it
    order_id bigint NOT NULL REFERENCES orders,
    payload  text NOT NULL
);

-- The consumer's; it could be another database. Neither table refuses an order that comes twice: only the
-- claims do, or the check would prove nothing.
CREATE TABLE IF NOT EXISTS shipments (order_id bigint NOT NULL, item text NOT NULL);
CREATE TABLE IF NOT EXISTS mails (order_id bigint NOT NULL);    -- stands for a provider of mail, somewhere else
